#include "netlink/delivery_rule.h"

#include <linux/fib_rules.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>

#include "netlink/request_socket.h"
#include "netlink/requests.h"
#include "netlink/virtual_addresses.h"
#include "netlink/virtual_addresses_wire.h"

namespace shunt::netlink {
namespace {

constexpr char kWhat[] = "rule for the addresses of Services";
// Another one than the rule for marked packets: rules are removed by their number.
constexpr std::uint32_t kPriority = VirtualAddresses::kRulePriority + 1;

}  // namespace

Result<> deliver_unmarked(net::Family family) {
  auto socket = RequestSocket::open_route();
  if (!socket) {
    return fail(kWhat, socket.error());
  }
  fib_rule_hdr head{};
  head.family = family == net::Family::IPv4 ? AF_INET : AF_INET6;
  head.action = FR_ACT_TO_TBL;
  head.flags = FIB_RULE_INVERT;  // not from `lo`, as which the node's own packets come
  Requests rule;
  rule.begin(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, head);
  rule.put_u32(FRA_PRIORITY, kPriority);
  rule.put_u32(FRA_TABLE, VirtualAddresses::kRouteTable);
  rule.put_string(FRA_IIFNAME, "lo");
  rule.put_u8(FRA_PROTOCOL, RTPROT_KERNEL);  // see VirtualAddresses::set_up()
  rule.end();
  std::vector<RefusedRequest> refused;
  if (auto sent = (*socket)->send_each(rule, refused); !sent) {
    return fail(kWhat, sent.error());
  }
  if (!refused.empty() && refused.front().sys_errno != EEXIST) {
    return request_failure(kWhat, refused.front().sys_errno);
  }
  return {};
}

Result<bool> has_delivery_rule(net::Family family) {
  auto socket = RequestSocket::open_route();
  if (!socket) {
    return fail(kWhat, socket.error());
  }
  Requests question;
  address_wire::encode_list_rules(question, family);
  bool found = false;
  auto asked = ask_until_whole(
      **socket,
      question,
      [&] { found = false; },
      [&](AttributeBytes payload) {
        const auto rule = address_wire::decode_rule(payload, family);
        found = found || (rule && rule->table == VirtualAddresses::kRouteTable);
      });
  if (!asked) {
    return fail(kWhat, asked.error());
  }
  return found;
}

}  // namespace shunt::netlink
