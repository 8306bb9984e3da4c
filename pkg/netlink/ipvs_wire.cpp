#include "netlink/ipvs_wire.h"

#include <arpa/inet.h>
#include <linux/genetlink.h>
#include <linux/ip_vs.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <limits>

namespace shunt::netlink::ipvs {
namespace {

constexpr std::uint32_t kHashed = IP_VS_SVC_F_HASHED;  // the kernel's own: it is in the table
constexpr std::uint32_t kWholeIpv4 = 0xffffffff;
constexpr std::uint32_t kWholeIpv6 = 128;

std::uint32_t seconds(std::chrono::seconds value) {
  return static_cast<std::uint32_t>(std::clamp<std::chrono::seconds::rep>(
      value.count(), 0, std::numeric_limits<std::uint32_t>::max()));
}

std::uint16_t number(net::Family family) {
  return family == net::Family::IPv4 ? AF_INET : AF_INET6;
}

std::span<const std::uint8_t> bytes_of(const net::IpAddress& ip) {
  return std::span(ip.bytes).first(ip.size());
}

void begin(Requests& to, Verb verb, std::uint16_t flags = 0) {
  genlmsghdr head{};
  head.cmd = static_cast<std::uint8_t>(verb);
  head.version = IPVS_GENL_VERSION;
  to.begin(Requests::kGenericFamily, flags, head);
}

void put_key(Requests& to, const ServerKey& key) {
  to.put_u16(IPVS_SVC_ATTR_AF, number(key.address.ip.family));
  to.put_u16(IPVS_SVC_ATTR_PROTOCOL, static_cast<std::uint16_t>(key.protocol));
  to.put(IPVS_SVC_ATTR_ADDR, bytes_of(key.address.ip));
  to.put_be16(IPVS_SVC_ATTR_PORT, net::number(key.address.port));
}

void put_server(Requests& to, const ServerKey& key) {
  const std::size_t nest = to.nest(IPVS_CMD_ATTR_SERVICE);
  put_key(to, key);
  to.end_nest(nest);
}

void put_address(Requests& to, const net::SocketAddress& address) {
  to.put(IPVS_DEST_ATTR_ADDR, bytes_of(address.ip));
  to.put_be16(IPVS_DEST_ATTR_PORT, net::number(address.port));
  to.put_u16(IPVS_DEST_ATTR_ADDR_FAMILY, number(address.ip.family));
}

AttributeBytes after(AttributeBytes bytes, std::size_t header) {
  return bytes.size() < header ? AttributeBytes{} : bytes.subspan(header);
}

template <typename T>
std::optional<T> value(AttributeBytes attributes, std::uint16_t type) {
  const auto found = find_attribute(attributes, type);
  T out{};
  if (!found || found->size() < sizeof out) {
    return std::nullopt;
  }
  std::memcpy(&out, found->data(), sizeof out);
  return out;
}

std::optional<net::Family> family_of(std::uint16_t number) {
  return number == AF_INET    ? std::optional(net::Family::IPv4)
         : number == AF_INET6 ? std::optional(net::Family::IPv6)
                              : std::nullopt;
}

std::optional<net::Protocol> protocol_of(std::uint16_t number) {
  for (const net::Protocol one : {net::Protocol::Tcp, net::Protocol::Udp, net::Protocol::Sctp}) {
    if (static_cast<std::uint16_t>(one) == number) {
      return one;
    }
  }
  return std::nullopt;
}

// The kernel sends 16 bytes of either family, we send 4 of IPv4.
std::optional<net::SocketAddress> address_of(
    AttributeBytes attributes, net::Family family, std::uint16_t ip, std::uint16_t port) {
  const auto bytes = find_attribute(attributes, ip);
  const auto be_port = value<std::uint16_t>(attributes, port);
  net::SocketAddress out{{family, {}}, {}};
  if (!bytes || bytes->size() < out.ip.size() || !be_port) {
    return std::nullopt;
  }
  std::copy_n(bytes->begin(), out.ip.size(), out.ip.bytes.begin());
  out.port = net::Port{ntohs(*be_port)};
  return out;
}

std::optional<ServerKey> key_of(AttributeBytes attributes) {
  const auto family = family_of(value<std::uint16_t>(attributes, IPVS_SVC_ATTR_AF).value_or(0));
  const auto protocol =
      protocol_of(value<std::uint16_t>(attributes, IPVS_SVC_ATTR_PROTOCOL).value_or(0));
  if (!family || !protocol) {
    return std::nullopt;
  }
  const auto address = address_of(attributes, *family, IPVS_SVC_ATTR_ADDR, IPVS_SVC_ATTR_PORT);
  return address ? std::optional(ServerKey{*address, *protocol}) : std::nullopt;
}

// 0: single addresses.
std::uint32_t read_netmask(std::uint32_t raw, net::Family family) {
  const std::uint32_t mask = family == net::Family::IPv4 ? ntohl(raw) : raw;
  return mask == (family == net::Family::IPv4 ? kWholeIpv4 : kWholeIpv6) ? 0 : mask;
}

std::uint32_t write_netmask(std::uint32_t mask, net::Family family) {
  if (family == net::Family::IPv4) {
    return htonl(mask == 0 ? kWholeIpv4 : mask);
  }
  return mask == 0 ? kWholeIpv6 : mask;
}

const char* word(Verb verb) {
  switch (verb) {
    case Verb::NewServer:
    case Verb::NewDestination:
      return "add";
    case Verb::SetServer:
    case Verb::SetDestination:
      return "change";
    case Verb::DeleteServer:
    case Verb::DeleteDestination:
      return "remove";
    default:
      return "ask for";
  }
}

}  // namespace

void encode(Requests& to, Verb verb, const Server& server) {
  begin(to, verb);
  const std::size_t nest = to.nest(IPVS_CMD_ATTR_SERVICE);
  put_key(to, server.key);
  to.put_string(IPVS_SVC_ATTR_SCHED_NAME, server.scheduler);
  const ip_vs_flags flags{server.flags & ~kHashed, ~std::uint32_t{0}};
  std::uint8_t bytes[sizeof flags];
  std::memcpy(bytes, &flags, sizeof flags);
  to.put(IPVS_SVC_ATTR_FLAGS, bytes);
  to.put_u32(IPVS_SVC_ATTR_TIMEOUT, seconds(server.timeout));
  to.put_u32(IPVS_SVC_ATTR_NETMASK, write_netmask(server.netmask, server.key.address.ip.family));
  to.end_nest(nest);
  to.end();
}

void encode(Requests& to, Verb verb, const ServerKey& server) {
  begin(to, verb);
  put_server(to, server);
  to.end();
}

void encode(Requests& to, Verb verb, const ServerKey& server, const Destination& destination) {
  begin(to, verb);
  put_server(to, server);
  const std::size_t nest = to.nest(IPVS_CMD_ATTR_DEST);
  put_address(to, destination.address);
  to.put_u32(IPVS_DEST_ATTR_FWD_METHOD, destination.forwarding);
  to.put_u32(IPVS_DEST_ATTR_WEIGHT, destination.weight);
  to.put_u32(IPVS_DEST_ATTR_U_THRESH, 0);
  to.put_u32(IPVS_DEST_ATTR_L_THRESH, 0);
  to.end_nest(nest);
  to.end();
}

void encode(
    Requests& to, Verb verb, const ServerKey& server, const net::SocketAddress& destination) {
  begin(to, verb);
  put_server(to, server);
  const std::size_t nest = to.nest(IPVS_CMD_ATTR_DEST);
  put_address(to, destination);
  to.end_nest(nest);
  to.end();
}

void encode(Requests& to, const Timeouts& timeouts) {
  begin(to, Verb::SetConfig);
  to.put_u32(IPVS_CMD_ATTR_TIMEOUT_TCP, seconds(timeouts.tcp));
  to.put_u32(IPVS_CMD_ATTR_TIMEOUT_TCP_FIN, seconds(timeouts.tcp_fin));
  to.put_u32(IPVS_CMD_ATTR_TIMEOUT_UDP, seconds(timeouts.udp));
  to.end();
}

void encode_list_servers(Requests& to) {
  begin(to, Verb::GetServer, NLM_F_DUMP);
  to.end();
}

void encode_list_destinations(Requests& to, const ServerKey& server) {
  begin(to, Verb::GetDestination, NLM_F_DUMP);
  put_server(to, server);
  to.end();
}

void encode_get_config(Requests& to) {
  begin(to, Verb::GetConfig);
  to.end();
}

std::optional<Server> decode_server(AttributeBytes payload) {
  const auto nest = find_attribute(after(payload, GENL_HDRLEN), IPVS_CMD_ATTR_SERVICE);
  if (!nest || find_attribute(*nest, IPVS_SVC_ATTR_FWMARK)) {
    return std::nullopt;
  }
  const auto key = key_of(*nest);
  const auto scheduler = find_attribute(*nest, IPVS_SVC_ATTR_SCHED_NAME);
  const auto flags = value<ip_vs_flags>(*nest, IPVS_SVC_ATTR_FLAGS);
  if (!key || !scheduler || !flags) {
    return std::nullopt;
  }
  Server out;
  out.key = *key;
  out.scheduler = attribute_text(*scheduler);
  out.flags = flags->flags & ~kHashed;
  out.timeout =
      std::chrono::seconds(value<std::uint32_t>(*nest, IPVS_SVC_ATTR_TIMEOUT).value_or(0));
  out.netmask = read_netmask(
      value<std::uint32_t>(*nest, IPVS_SVC_ATTR_NETMASK).value_or(0), key->address.ip.family);
  return out;
}

std::optional<Destination> decode_destination(AttributeBytes payload, net::Family family) {
  const auto nest = find_attribute(after(payload, GENL_HDRLEN), IPVS_CMD_ATTR_DEST);
  if (!nest) {
    return std::nullopt;
  }
  if (const auto named = value<std::uint16_t>(*nest, IPVS_DEST_ATTR_ADDR_FAMILY)) {
    const auto known = family_of(*named);
    if (!known) {
      return std::nullopt;
    }
    family = *known;
  }
  const auto address = address_of(*nest, family, IPVS_DEST_ATTR_ADDR, IPVS_DEST_ATTR_PORT);
  if (!address) {
    return std::nullopt;
  }
  Destination out;
  out.address = *address;
  out.weight = value<std::uint32_t>(*nest, IPVS_DEST_ATTR_WEIGHT).value_or(0);
  out.forwarding = value<std::uint32_t>(*nest, IPVS_DEST_ATTR_FWD_METHOD).value_or(0);
  out.active_connections = value<std::uint32_t>(*nest, IPVS_DEST_ATTR_ACTIVE_CONNS).value_or(0);
  out.inactive_connections = value<std::uint32_t>(*nest, IPVS_DEST_ATTR_INACT_CONNS).value_or(0);
  return out;
}

std::optional<Timeouts> decode_timeouts(AttributeBytes payload) {
  const AttributeBytes attributes = after(payload, GENL_HDRLEN);
  const auto tcp = value<std::uint32_t>(attributes, IPVS_CMD_ATTR_TIMEOUT_TCP);
  const auto tcp_fin = value<std::uint32_t>(attributes, IPVS_CMD_ATTR_TIMEOUT_TCP_FIN);
  const auto udp = value<std::uint32_t>(attributes, IPVS_CMD_ATTR_TIMEOUT_UDP);
  if (!tcp && !tcp_fin && !udp) {
    return std::nullopt;
  }
  return Timeouts{
      std::chrono::seconds(tcp.value_or(0)),
      std::chrono::seconds(tcp_fin.value_or(0)),
      std::chrono::seconds(udp.value_or(0))};
}

std::optional<Verb> verb_of(AttributeBytes request) {
  const AttributeBytes generic = after(request, NLMSG_HDRLEN);
  return generic.empty() ? std::nullopt : std::optional(Verb{generic.front()});
}

std::string describe(AttributeBytes request) {
  const AttributeBytes attributes = after(request, NLMSG_HDRLEN + GENL_HDRLEN);
  std::string out = word(verb_of(request).value_or(Verb::GetServer));
  const auto server = find_attribute(attributes, IPVS_CMD_ATTR_SERVICE);
  const auto key = server ? key_of(*server) : std::nullopt;
  if (!key) {
    return out;
  }
  if (const auto nest = find_attribute(attributes, IPVS_CMD_ATTR_DEST)) {
    const auto family =
        family_of(value<std::uint16_t>(*nest, IPVS_DEST_ATTR_ADDR_FAMILY).value_or(0));
    const auto address = address_of(
        *nest, family.value_or(key->address.ip.family), IPVS_DEST_ATTR_ADDR, IPVS_DEST_ATTR_PORT);
    out.append(" destination ").append(address ? net::to_string(*address) : "?").append(" of");
  }
  out.append(" virtual server ").append(net::to_string(key->protocol)).append(" ");
  return out.append(net::to_string(key->address));
}

}  // namespace shunt::netlink::ipvs
