#include "backend/conntrack/wire.h"

#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "netlink/interface_addresses.h"

namespace shunt::backend::conntrack {
namespace {

using netlink::AttributeBytes;
using netlink::Attributes;

// "Compare the protocol": a bit of CTA_FILTER_ORIG_FLAGS, which no header of the kernel names.
constexpr std::uint32_t kFilterByProtocol = 1U << 3;

std::uint16_t be16(AttributeBytes payload) {
  return payload.size() < 2 ? std::uint16_t{0}
                            : static_cast<std::uint16_t>(payload[0] << 8 | payload[1]);
}

std::optional<net::IpAddress> parse_address(AttributeBytes payload) {
  net::IpAddress ip{payload.size() == 4 ? net::Family::IPv4 : net::Family::IPv6, {}};
  if (payload.size() != ip.size()) {
    return std::nullopt;
  }
  std::copy(payload.begin(), payload.end(), ip.bytes.begin());
  return ip;
}

// A direction as the kernel tells it, and what its attributes say besides.
struct Told {
  std::optional<net::IpAddress> from;
  std::optional<net::IpAddress> to;
  std::uint16_t from_port = 0;
  std::uint16_t to_port = 0;
  std::uint8_t protocol = 0;
  std::uint16_t zone = 0;  // when zones are kept apart by direction
};

Told parse_direction(AttributeBytes tuple) {
  Told told;
  netlink::for_each_attribute(tuple, [&](std::uint16_t part, AttributeBytes content) {
    if (part == CTA_TUPLE_ZONE) {
      told.zone = be16(content);
    } else if (part == CTA_TUPLE_IP) {
      netlink::for_each_attribute(content, [&](std::uint16_t type, AttributeBytes payload) {
        if (type == CTA_IP_V4_SRC || type == CTA_IP_V6_SRC) {
          told.from = parse_address(payload);
        } else if (type == CTA_IP_V4_DST || type == CTA_IP_V6_DST) {
          told.to = parse_address(payload);
        }
      });
    } else if (part == CTA_TUPLE_PROTO) {
      netlink::for_each_attribute(content, [&](std::uint16_t type, AttributeBytes payload) {
        if (type == CTA_PROTO_NUM && !payload.empty()) {
          told.protocol = payload[0];
        } else if (type == CTA_PROTO_SRC_PORT) {
          told.from_port = be16(payload);
        } else if (type == CTA_PROTO_DST_PORT) {
          told.to_port = be16(payload);
        }
      });
    }
  });
  return told;
}

Direction direction(const Told& told) {
  return {{*told.from, net::Port{told.from_port}}, {*told.to, net::Port{told.to_port}}};
}

void put_direction(
    Attributes& out, std::uint16_t attribute, std::uint8_t protocol, const Direction& direction) {
  const bool v4 = direction.from.ip.family == net::Family::IPv4;
  const auto bytes = [](const net::IpAddress& ip) {
    return std::span<const std::uint8_t>(ip.bytes.data(), ip.size());
  };
  const std::size_t tuple = out.nest(attribute);
  const std::size_t ips = out.nest(CTA_TUPLE_IP);
  out.put(v4 ? CTA_IP_V4_SRC : CTA_IP_V6_SRC, bytes(direction.from.ip));
  out.put(v4 ? CTA_IP_V4_DST : CTA_IP_V6_DST, bytes(direction.to.ip));
  out.end_nest(ips);
  const std::size_t ports = out.nest(CTA_TUPLE_PROTO);
  out.put_u8(CTA_PROTO_NUM, protocol);
  out.put_be16(CTA_PROTO_SRC_PORT, net::number(direction.from.port));
  out.put_be16(CTA_PROTO_DST_PORT, net::number(direction.to.port));
  out.end_nest(ports);
  out.end_nest(tuple);
}

Attributes only_udp() {
  Attributes out;
  const std::size_t filter = out.nest(CTA_FILTER);
  out.put_u32(CTA_FILTER_ORIG_FLAGS, kFilterByProtocol);
  out.put_u32(CTA_FILTER_REPLY_FLAGS, 0);
  out.end_nest(filter);
  const std::size_t tuple = out.nest(CTA_TUPLE_ORIG);
  const std::size_t protocol = out.nest(CTA_TUPLE_PROTO);
  out.put_u8(CTA_PROTO_NUM, IPPROTO_UDP);
  out.end_nest(protocol);
  out.end_nest(tuple);
  return out;
}

}  // namespace

std::uint8_t kernel_family(net::Family family) {
  return family == net::Family::IPv4 ? AF_INET : AF_INET6;
}

std::optional<Flow> parse_flow(AttributeBytes attributes) {
  Flow flow;
  Told original;
  Told reply;
  netlink::for_each_attribute(attributes, [&](std::uint16_t type, AttributeBytes payload) {
    switch (type) {
      case CTA_TUPLE_ORIG:
        original = parse_direction(payload);
        break;
      case CTA_TUPLE_REPLY:
        reply = parse_direction(payload);
        break;
      case CTA_STATUS:
        flow.answered = (netlink::attribute_be32(payload) & IPS_SEEN_REPLY) != 0;
        break;
      case CTA_ZONE:
        flow.zone = be16(payload);
        break;
      case CTA_ID:
        flow.id = netlink::attribute_be32(payload);
        break;
      default:
        break;
    }
  });
  if (!original.from || !original.to || !reply.from || !reply.to) {
    return std::nullopt;
  }
  flow.protocol = original.protocol;
  flow.original = direction(original);
  flow.reply = direction(reply);
  flow.zone = std::max(flow.zone, original.zone);
  return flow;
}

void put_flow(Attributes& attributes, const Flow& flow) {
  put_direction(attributes, CTA_TUPLE_ORIG, flow.protocol, flow.original);
  put_direction(attributes, CTA_TUPLE_REPLY, flow.protocol, flow.reply);
  if (flow.zone != 0) {
    attributes.put_be16(CTA_ZONE, flow.zone);
  }
}

KernelFlowTable::KernelFlowTable(
    std::unique_ptr<netlink::Socket> listing, std::unique_ptr<netlink::Socket> removing)
    : listing_(std::move(listing)),
      removing_(std::move(removing)),
      removals_(NFNL_SUBSYS_CTNETLINK) {}

Result<std::unique_ptr<KernelFlowTable>> KernelFlowTable::open() {
  auto listing = netlink::Socket::open();
  auto removing = netlink::Socket::open();
  if (!listing || !removing) {
    return fail("conntrack", listing ? removing.error() : listing.error());
  }
  return std::unique_ptr<KernelFlowTable>(
      new KernelFlowTable(std::move(*listing), std::move(*removing)));
}

Result<> KernelFlowTable::scan(
    net::Family family, Which which, const std::function<void(const Flow&)>& each) {
  if (which == Which::All || !kernel_filters_) {
    return list(family, {}, each);
  }
  Result<> done = list(family, only_udp(), each);
  // Kernels before 5.8 ignore a filter, one with another idea of it refuses.
  if (done || (done.error().code != Errc::Invalid && done.error().code != Errc::Unsupported)) {
    return done;
  }
  done = list(family, {}, each);
  kernel_filters_ = !done;
  return done;
}

Result<> KernelFlowTable::list(
    net::Family family, const Attributes& filter, const std::function<void(const Flow&)>& each) {
  if (!listing_) {
    auto opened = netlink::Socket::open();
    if (!opened) {
      return tl::unexpected(opened.error());
    }
    listing_ = std::move(*opened);
  }
  Result<> done = listing_->dump(
      NFNL_SUBSYS_CTNETLINK,
      IPCTNL_MSG_CT_GET,
      kernel_family(family),
      filter.bytes(),
      [&](AttributeBytes attributes) {
        if (const auto flow = parse_flow(attributes)) {
          each(*flow);
        }
      });
  if (!done && done.error().sys_errno != EINTR) {
    // A listing that broke off goes on in the kernel, which takes no other on that socket.
    listing_.reset();
  }
  return done;
}

// With the id an entry is removed only if it is the one that was judged. CTA_TUPLE_ORIG must never
// be missing: without it the kernel empties the whole table.
FlowTable::Removal KernelFlowTable::remove(net::Family family, std::span<const Flow> flows) {
  removals_.clear();
  for (const Flow& flow : flows) {
    removals_.begin(IPCTNL_MSG_CT_DELETE, 0, kernel_family(family));
    put_flow(removals_, flow);
    removals_.put_be32(CTA_ID, flow.id);
    removals_.end();
  }
  std::vector<netlink::MessageError> errors;
  if (Result<> sent = removing_->send_each(removals_, errors); !sent) {
    return {0, std::move(sent)};
  }
  Removal out{flows.size() - errors.size(), {}};
  for (const netlink::MessageError& error : errors) {
    if (error.sys_errno != ENOENT) {
      out.outcome = fail(
          netlink::errc_of(error.sys_errno),
          std::string("a flow cannot be removed: ") + std::strerror(error.sys_errno),
          error.sys_errno);
    }
  }
  return out;
}

Result<LocalAddresses> KernelFlowTable::local_addresses() {
  return netlink::interface_addresses().map([](const std::vector<net::IpAddress>& all) {
    LocalAddresses out(all.begin(), all.end());
    std::erase_if(out, [](const net::IpAddress& ip) { return net::is_loopback(ip); });
    return out;
  });
}

}  // namespace shunt::backend::conntrack
