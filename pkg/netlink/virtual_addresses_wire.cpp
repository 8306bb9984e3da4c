#include "netlink/virtual_addresses_wire.h"

#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>

namespace shunt::netlink::address_wire {
namespace {

constexpr std::uint16_t kNew = NLM_F_CREATE | NLM_F_EXCL;

std::uint8_t number(net::Family family) { return family == net::Family::IPv4 ? AF_INET : AF_INET6; }

std::uint8_t bits(const net::IpAddress& ip) { return static_cast<std::uint8_t>(ip.size() * 8); }

std::span<const std::uint8_t> bytes_of(const net::IpAddress& ip) {
  return std::span(ip.bytes).first(ip.size());
}

std::uint16_t flags(Verb verb) { return verb == Verb::Add ? kNew : 0; }

template <typename Head>
std::optional<Head> head_of(AttributeBytes payload) {
  Head head{};
  if (payload.size() < sizeof head) {
    return std::nullopt;
  }
  std::memcpy(&head, payload.data(), sizeof head);
  return head;
}

// A number in the order of this machine.
std::optional<std::uint32_t> u32(AttributeBytes attributes, std::uint16_t type) {
  const auto found = find_attribute(attributes, type);
  std::uint32_t out = 0;
  if (!found || found->size() < sizeof out) {
    return std::nullopt;
  }
  std::memcpy(&out, found->data(), sizeof out);
  return out;
}

std::optional<net::IpAddress> ip(
    AttributeBytes attributes, std::uint16_t type, net::Family family) {
  const auto found = find_attribute(attributes, type);
  net::IpAddress out{family, {}};
  if (!found || found->size() != out.size()) {
    return std::nullopt;
  }
  std::copy_n(found->begin(), out.size(), out.bytes.begin());
  return out;
}

std::uint8_t short_table(std::uint32_t table) {
  return table < 256 ? static_cast<std::uint8_t>(table) : std::uint8_t{RT_TABLE_UNSPEC};
}

}  // namespace

void encode_add_dummy(Requests& to, std::string_view name) {
  to.begin(RTM_NEWLINK, kNew, ifinfomsg{});
  to.put_string(IFLA_IFNAME, name);
  const std::size_t nest = to.nest(IFLA_LINKINFO);
  to.put_string(IFLA_INFO_KIND, "dummy");
  to.end_nest(nest);
  to.end();
}

void encode_remove_device(Requests& to, int index) {
  ifinfomsg head{};
  head.ifi_index = index;
  to.begin(RTM_DELLINK, 0, head);
  to.end();
}

void encode_get_device(Requests& to, std::string_view name) {
  to.begin(RTM_GETLINK, 0, ifinfomsg{});
  to.put_string(IFLA_IFNAME, name);
  to.end();
}

int decode_device(AttributeBytes payload) {
  const auto head = head_of<ifinfomsg>(payload);
  return head ? head->ifi_index : 0;
}

void encode_address(Requests& to, Verb verb, const net::IpAddress& address, int device) {
  ifaddrmsg head{};
  head.ifa_family = number(address.family);
  head.ifa_prefixlen = bits(address);
  head.ifa_scope = RT_SCOPE_HOST;
  head.ifa_index = static_cast<std::uint32_t>(device);
  to.begin(verb == Verb::Add ? RTM_NEWADDR : RTM_DELADDR, flags(verb), head);
  to.put(IFA_LOCAL, bytes_of(address));
  to.put(IFA_ADDRESS, bytes_of(address));
  if (verb == Verb::Add && address.family == net::Family::IPv6) {
    // Nobody is to be asked whether he has it, and the only route to it is ours to make.
    to.put_u32(IFA_FLAGS, IFA_F_NODAD | IFA_F_NOPREFIXROUTE);
  }
  to.end();
}

// What a kernel before 4.20 does not look at when it lists (NETLINK_GET_STRICT_CHK) the decoders
// look at again.
void encode_list_addresses(Requests& to, net::Family family, int device) {
  ifaddrmsg head{};
  head.ifa_family = number(family);
  head.ifa_index = static_cast<std::uint32_t>(device);
  to.begin(RTM_GETADDR, NLM_F_DUMP, head);
  to.end();
}

std::optional<net::IpAddress> decode_address(
    AttributeBytes payload, net::Family family, int device) {
  const auto head = head_of<ifaddrmsg>(payload);
  if (!head || head->ifa_family != number(family) ||
      head->ifa_index != static_cast<std::uint32_t>(device)) {
    return std::nullopt;
  }
  const AttributeBytes attributes = payload.subspan(sizeof *head);
  const auto local = ip(attributes, IFA_LOCAL, family);
  const auto out = local ? local : ip(attributes, IFA_ADDRESS, family);
  if (!out || head->ifa_prefixlen != bits(*out) || net::is_link_local(*out)) {
    return std::nullopt;
  }
  return out;
}

void encode_route(Requests& to, Verb verb, const net::IpAddress& address, const LocalRoute& route) {
  const bool add = verb == Verb::Add;
  const bool to_local = route.table == RT_TABLE_LOCAL;
  rtmsg head{};
  head.rtm_family = number(address.family);
  head.rtm_dst_len = bits(address);
  head.rtm_table = short_table(route.table);
  head.rtm_type = RTN_LOCAL;
  // Whoever made it, and of whatever scope: it goes.
  head.rtm_protocol = add ? RTPROT_KERNEL : RTPROT_UNSPEC;
  head.rtm_scope = add ? RT_SCOPE_HOST : RT_SCOPE_NOWHERE;
  to.begin(add ? RTM_NEWROUTE : RTM_DELROUTE, flags(verb), head);
  to.put(RTA_DST, bytes_of(address));
  if (add && to_local && address.family == net::Family::IPv4) {
    to.put(RTA_PREFSRC, bytes_of(address));
  }
  to.put_u32(RTA_OIF, static_cast<std::uint32_t>(route.device));
  to.put_u32(RTA_TABLE, route.table);
  to.end();
}

void encode_list_routes(Requests& to, net::Family family, const LocalRoute& route) {
  rtmsg head{};
  head.rtm_family = number(family);
  head.rtm_table = short_table(route.table);
  head.rtm_type = RTN_LOCAL;
  to.begin(RTM_GETROUTE, NLM_F_DUMP, head);
  to.put_u32(RTA_OIF, static_cast<std::uint32_t>(route.device));
  to.put_u32(RTA_TABLE, route.table);
  to.end();
}

std::optional<net::IpAddress> decode_route(
    AttributeBytes payload, net::Family family, const LocalRoute& route) {
  const auto head = head_of<rtmsg>(payload);
  if (!head || head->rtm_family != number(family) || head->rtm_type != RTN_LOCAL ||
      (head->rtm_flags & RTM_F_CLONED) != 0) {
    return std::nullopt;
  }
  const AttributeBytes attributes = payload.subspan(sizeof *head);
  const auto out = ip(attributes, RTA_DST, family);
  if (!out || head->rtm_dst_len != bits(*out) ||
      u32(attributes, RTA_TABLE).value_or(head->rtm_table) != route.table ||
      u32(attributes, RTA_OIF) != static_cast<std::uint32_t>(route.device)) {
    return std::nullopt;
  }
  return out;
}

void encode_rule(Requests& to, Verb verb, net::Family family, const MarkRule& rule) {
  fib_rule_hdr head{};
  head.family = number(family);
  head.action = FR_ACT_TO_TBL;
  head.table = short_table(rule.table);
  to.begin(verb == Verb::Add ? RTM_NEWRULE : RTM_DELRULE, flags(verb), head);
  to.put_u32(FRA_PRIORITY, rule.priority);
  to.put_u32(FRA_FWMARK, rule.mark);
  to.put_u32(FRA_FWMASK, rule.mask);
  to.put_u32(FRA_TABLE, rule.table);
  if (verb == Verb::Add) {
    to.put_u8(FRA_PROTOCOL, RTPROT_KERNEL);  // since Linux 4.17; earlier ones pass it over
  }
  to.end();
}

void encode_list_rules(Requests& to, net::Family family) {
  fib_rule_hdr head{};
  head.family = number(family);
  to.begin(RTM_GETRULE, NLM_F_DUMP, head);
  to.end();
}

std::optional<MarkRule> decode_rule(AttributeBytes payload, net::Family family) {
  const auto head = head_of<fib_rule_hdr>(payload);
  if (!head || head->family != number(family) || head->action != FR_ACT_TO_TBL) {
    return std::nullopt;
  }
  const AttributeBytes attributes = payload.subspan(sizeof *head);
  return MarkRule{
      u32(attributes, FRA_PRIORITY).value_or(0),
      u32(attributes, FRA_FWMARK).value_or(0),
      u32(attributes, FRA_FWMASK).value_or(0),
      u32(attributes, FRA_TABLE).value_or(head->table)};
}

}  // namespace shunt::netlink::address_wire
