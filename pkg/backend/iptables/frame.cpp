#include "backend/iptables/frame.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/iptables/names.h"
#include "backend/iptables/rule.h"

namespace shunt::backend::iptables {
namespace {

constexpr char kNew[] = "-m conntrack --ctstate NEW";

Jump jump(Table table, const char* from, bool new_only, const char* comment, const char* to) {
  const Rule plain = Rule().jump(to);
  if (!new_only) {
    const std::string text = Rule(plain).comment(comment).text();
    return {table, from, text, text};
  }
  return {
      table,
      from,
      Rule(plain).match(kNew).comment(comment).text(),
      Rule(plain).comment(comment).match(kNew).text()};
}

Jump jump_to_guard(const char* from) {
  const std::string text = Rule().jump(kGuard).text();
  return {Table::Filter, from, text, text, true};
}

constexpr char kPortals[] = "kubernetes service portals";
constexpr char kVisible[] = "kubernetes externally-visible service portals";
constexpr char kBalancers[] = "kubernetes load balancer firewall";

}  // namespace

const std::vector<Jump>& jumps() {
  using enum Table;
  static const std::vector<Jump> all{
      jump(Filter, "INPUT", true, kVisible, kExternalServices),
      jump(Filter, "FORWARD", true, kVisible, kExternalServices),
      jump(Filter, "INPUT", false, "kubernetes health check service ports", kNodePorts),
      jump(Filter, "FORWARD", true, kPortals, kServices),
      jump(Filter, "OUTPUT", true, kPortals, kServices),
      jump(Filter, "FORWARD", false, "kubernetes forwarding rules", kForward),
      jump(Filter, "INPUT", true, kBalancers, kFirewall),
      jump(Filter, "OUTPUT", true, kBalancers, kFirewall),
      jump(Filter, "FORWARD", true, kBalancers, kFirewall),
      jump(Nat, "OUTPUT", false, kPortals, kServices),
      jump(Nat, "PREROUTING", false, kPortals, kServices),
      jump(Nat, "POSTROUTING", false, "kubernetes postrouting rules", kPostrouting),
      jump_to_guard("INPUT"),
      jump_to_guard("OUTPUT")};
  return all;
}

std::set<std::size_t> wanted_jumps(const FrameSettings& settings) {
  std::set<std::size_t> out;
  for (std::size_t i = 0; i < jumps().size(); ++i) {
    if (settings.localhost_node_ports || !jumps()[i].to_guard) {
      out.insert(i);
    }
  }
  return out;
}

const std::string& guard_rule() {
  static const std::string text = [] {
    const net::Cidr loopback = *net::parse_cidr("127.0.0.0/8");
    return Rule()
        .from(loopback, true)
        .to(loopback)
        .comment("block incoming localnet connections")
        .match("-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT")
        .jump("DROP")
        .text();
  }();
  return text;
}

bool is_written_as(const Jump& jump, std::string_view rule) {
  return rule == jump.rule || rule == jump.in_other_order;
}

std::map<ChainName, Rules> fixed_chains(const FrameSettings& settings) {
  const std::string mark = fmt::format("{:#x}", settings.masquerade_mark);
  const std::string marked = fmt::format("--mark {}/{}", mark, mark);
  std::map<ChainName, Rules> out;
  // The mark goes first, so that a packet that comes by again (a tunnel's) is masqueraded once; the
  // first rule makes the exclusive or safe.
  out[{Table::Nat, kPostrouting}] = {
      Rule().match("-m mark ! " + marked).jump("RETURN").text(),
      Rule().jump(fmt::format("MARK --set-xmark {}/0x0", mark)).text(),
      Rule()
          .comment("kubernetes service traffic requiring SNAT")
          .jump("MASQUERADE --random-fully")
          .text()};
  out[{Table::Nat, kMarkMasquerade}] = {
      Rule().jump(fmt::format("MARK --set-xmark {}/{}", mark, mark)).text()};
  Rules& forward = out[{Table::Filter, kForward}];
  if (settings.drop_invalid) {
    forward.push_back(Rule().match("-m conntrack --ctstate INVALID").jump("DROP").text());
  }
  forward.push_back(Rule()
                        .comment("kubernetes forwarding rules")
                        .match("-m mark " + marked)
                        .jump("ACCEPT")
                        .text());
  forward.push_back(Rule()
                        .comment("kubernetes forwarding conntrack rule")
                        .match("-m conntrack --ctstate RELATED,ESTABLISHED")
                        .jump("ACCEPT")
                        .text());
  return out;
}

const std::vector<ChainName>& shared_chains() {
  static const std::vector<ChainName> all{
      {Table::Filter, kServices},
      {Table::Filter, kExternalServices},
      {Table::Filter, kNodePorts},
      {Table::Filter, kFirewall},
      {Table::Nat, kServices},
      {Table::Nat, kNodePorts}};
  return all;
}

Rules node_port_rules(const FrameSettings& settings, const std::vector<net::Cidr>& ranges) {
  constexpr char kComment[] =
      "kubernetes service nodeports; NOTE: this must be the last rule in this chain";
  constexpr char kLocal[] = "-m addrtype --dst-type LOCAL";
  const net::Cidr loopback = settings.family == net::Family::IPv4 ? *net::parse_cidr("127.0.0.0/8")
                                                                  : *net::parse_cidr("::1/128");
  const bool loopback_too = settings.localhost_node_ports;
  const auto lead = [&](const net::Cidr& range, bool negated) {
    return Rule().to(range, negated).comment(kComment).match(kLocal).jump(kNodePorts).text();
  };
  if (std::ranges::any_of(ranges, [](const net::Cidr& r) { return r.prefix_length == 0; })) {
    return {
        loopback_too ? Rule().comment(kComment).match(kLocal).jump(kNodePorts).text()
                     : lead(loopback, true)};
  }
  Rules out;
  std::vector<net::Cidr> sorted = ranges;
  std::sort(sorted.begin(), sorted.end());
  for (const net::Cidr& range : sorted) {
    if (!loopback_too && net::contains(loopback, range.base) &&
        range.prefix_length >= loopback.prefix_length) {
      continue;
    }
    if (!loopback_too && net::contains(range, loopback.base) && out.empty()) {
      out.push_back(Rule().to(loopback).comment(kComment).jump("RETURN").text());
    }
    out.push_back(lead(range, false));
  }
  return out;
}

}  // namespace shunt::backend::iptables
