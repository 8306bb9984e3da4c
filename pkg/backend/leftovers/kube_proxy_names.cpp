#include "backend/leftovers/kube_proxy_names.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace shunt::backend::leftovers {
namespace {

constexpr std::string_view kServicePrefixes[] = {
    "KUBE-SVC-", "KUBE-SVL-", "KUBE-SEP-", "KUBE-FW-", "KUBE-EXT-"};

constexpr std::string_view kNatChains[] = {
    "KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-POSTROUTING", "KUBE-MARK-MASQ"};
constexpr std::string_view kNatChainsOfIpvs[] = {"KUBE-NODE-PORT", "KUBE-LOAD-BALANCER"};

constexpr std::string_view kFilterChains[] = {
    "KUBE-SERVICES",
    "KUBE-EXTERNAL-SERVICES",
    "KUBE-FORWARD",
    "KUBE-NODEPORTS",
    "KUBE-PROXY-FIREWALL"};
constexpr std::string_view kFilterChainsOfIpvs[] = {
    "KUBE-NODE-PORT", "KUBE-SOURCE-RANGES-FIREWALL", "KUBE-IPVS-FILTER", "KUBE-IPVS-OUT-FILTER"};

constexpr std::string_view kSets[] = {
    "KUBE-LOOP-BACK",
    "KUBE-CLUSTER-IP",
    "KUBE-EXTERNAL-IP",
    "KUBE-EXTERNAL-IP-LOCAL",
    "KUBE-LOAD-BALANCER",
    "KUBE-LOAD-BALANCER-FW",
    "KUBE-LOAD-BALANCER-LOCAL",
    "KUBE-LOAD-BALANCER-SOURCE-IP",
    "KUBE-LOAD-BALANCER-SOURCE-CIDR",
    "KUBE-NODE-PORT-TCP",
    "KUBE-NODE-PORT-LOCAL-TCP",
    "KUBE-NODE-PORT-UDP",
    "KUBE-NODE-PORT-LOCAL-UDP",
    "KUBE-NODE-PORT-SCTP-HASH",
    "KUBE-NODE-PORT-LOCAL-SCTP-HASH",
    "KUBE-HEALTH-CHECK-NODE-PORT",
    "KUBE-IPVS-IPS"};
constexpr std::size_t kLongestSet = 31;  // the kernel's limit, to which longer names are cut

struct Jump {
  std::string_view table;
  std::string_view from;
  std::string_view to;
  std::string_view comment;
  bool new_connections;
};

constexpr std::string_view kPortals = "kubernetes service portals";
constexpr std::string_view kExternal = "kubernetes externally-visible service portals";
constexpr std::string_view kBalancerFirewall = "kubernetes load balancer firewall";
constexpr std::string_view kFirewall = "kube-proxy firewall rules";
constexpr std::string_view kForwarding = "kubernetes forwarding rules";
constexpr std::string_view kPostrouting = "kubernetes postrouting rules";
constexpr std::string_view kIpvsFilter = "kubernetes ipvs access filter";

constexpr Jump kJumps[] = {
    {"filter", "INPUT", "KUBE-EXTERNAL-SERVICES", kExternal, true},
    {"filter", "FORWARD", "KUBE-EXTERNAL-SERVICES", kExternal, true},
    {"filter", "INPUT", "KUBE-NODEPORTS", "kubernetes health check service ports", false},
    {"filter", "FORWARD", "KUBE-SERVICES", kPortals, true},
    {"filter", "OUTPUT", "KUBE-SERVICES", kPortals, true},
    {"filter", "FORWARD", "KUBE-FORWARD", kForwarding, false},
    {"filter", "INPUT", "KUBE-PROXY-FIREWALL", kBalancerFirewall, true},
    {"filter", "OUTPUT", "KUBE-PROXY-FIREWALL", kBalancerFirewall, true},
    {"filter", "FORWARD", "KUBE-PROXY-FIREWALL", kBalancerFirewall, true},
    {"nat", "OUTPUT", "KUBE-SERVICES", kPortals, false},
    {"nat", "PREROUTING", "KUBE-SERVICES", kPortals, false},
    {"nat", "POSTROUTING", "KUBE-POSTROUTING", kPostrouting, false},
    // of the IPVS mode, where it has others
    {"filter", "INPUT", "KUBE-NODE-PORT", "kubernetes health check rules", false},
    {"filter", "INPUT", "KUBE-PROXY-FIREWALL", kFirewall, false},
    {"filter", "FORWARD", "KUBE-PROXY-FIREWALL", kFirewall, false},
    {"filter", "INPUT", "KUBE-IPVS-FILTER", kIpvsFilter, false},
    {"filter", "OUTPUT", "KUBE-IPVS-OUT-FILTER", kIpvsFilter, false}};

bool among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Whether `name` is that of the IPv6 instance: "KUBE-6-..." for "KUBE-...", cut.
bool is_ipv6_name(std::string_view name, std::string_view ipv4_name) {
  constexpr std::string_view kOwn = "KUBE-";
  constexpr std::string_view kIpv6 = "KUBE-6-";
  if (!name.starts_with(kIpv6)) {
    return false;
  }
  const std::string_view rest = name.substr(kIpv6.size());
  return rest == ipv4_name.substr(kOwn.size()).substr(0, kLongestSet - kIpv6.size());
}

// In either order of the matches: versions differ.
bool is_written_as(const Jump& jump, std::string_view rule) {
  constexpr std::string_view kNew = "-m conntrack --ctstate NEW ";
  std::string comment = "-m comment --comment \"";
  comment.append(jump.comment).append("\" ");
  std::string target = "-j ";
  target.append(jump.to);
  const std::string_view condition = jump.new_connections ? kNew : std::string_view();
  std::string before(condition);
  before.append(comment).append(target);
  std::string after = comment;
  after.append(condition).append(target);
  return rule == before || rule == after;
}

}  // namespace

bool is_iptables_mode_chain(std::string_view table, std::string_view chain) {
  if (table == "nat") {
    return among(kNatChains, chain) || std::ranges::any_of(kServicePrefixes, [&](auto prefix) {
             return chain.starts_with(prefix);
           });
  }
  return table == "filter" && among(kFilterChains, chain);
}

bool is_kube_proxy_chain(std::string_view table, std::string_view chain) {
  const bool known = std::ranges::find(kTables, table) != std::end(kTables);
  return (known && chain == kCanary) || is_iptables_mode_chain(table, chain) ||
         (table == "nat" && among(kNatChainsOfIpvs, chain)) ||
         (table == "filter" && among(kFilterChainsOfIpvs, chain));
}

bool is_kube_proxy_set(std::string_view name) {
  return std::ranges::any_of(
      kSets, [&](auto known) { return name == known || is_ipv6_name(name, known); });
}

bool is_kube_proxy_jump(std::string_view table, std::string_view from, std::string_view rule) {
  return std::ranges::any_of(kJumps, [&](const Jump& jump) {
    return jump.table == table && jump.from == from && is_written_as(jump, rule);
  });
}

}  // namespace shunt::backend::leftovers
