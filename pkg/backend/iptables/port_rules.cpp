#include "backend/iptables/port_rules.h"

#include <fmt/format.h>

#include "backend/iptables/names.h"
#include "backend/iptables/rule.h"

namespace shunt::backend::iptables {
namespace {

using desired::EndpointListPtr;
using desired::Fate;
using desired::FrontendKey;
using desired::FrontendPlan;
using desired::Reach;

constexpr char kFromHere[] = "-m addrtype --src-type LOCAL";

class PortWriter {
 public:
  PortWriter(Frontends frontends, const Style& style)
      : frontends_(frontends),
        style_(style),
        name_(frontends.front().second->service),
        protocol_(frontends.front().first.protocol),
        cluster_(chain_of_port(PortChain::Cluster, name_, protocol_)),
        local_(chain_of_port(PortChain::Local, name_, protocol_)),
        external_(chain_of_port(PortChain::External, name_, protocol_)),
        firewall_(chain_of_port(PortChain::Firewall, name_, protocol_)) {}

  PortRules write() {
    // Rules of a chain in the order of kube-proxy: who is masqueraded, then who is chosen.
    for (const auto& [key, plan] : frontends_) {
      if (plan->reach == Reach::Internal) {
        internal(key, *plan);
      } else {
        external(key, *plan);
      }
    }
    for (const auto& [key, plan] : frontends_) {
      if (plan->reach == Reach::Internal && plan->internal_local) {
        choose(local_, plan->endpoints, *plan);
      } else {
        choose(cluster_, plan->endpoints, *plan);
        choose(local_, plan->local_endpoints, *plan);
      }
    }
    return std::move(out_);
  }

 private:
  void share(Table table, const char* chain, const Rule& rule) {
    out_.shared.insert({table, chain, rule.text()});
  }

  Rule towards(const FrontendKey& key, std::string_view comment) const {
    Rule rule;
    rule.protocol(protocol_).comment(comment);
    if (desired::is_node_port(key)) {
      rule.match("-m addrtype --dst-type LOCAL");
    } else {
      rule.to(alone(key.ip));
    }
    return rule.to_port(key.port);
  }

  // Rules for those who are local (or not) to the detector; false when nobody can tell.
  bool detect(Rule& rule, bool negated) const {
    switch (style_.detector.kind) {
      case LocalDetector::Kind::None:
        return false;
      case LocalDetector::Kind::SourceRange:
        if (style_.pods) {
          rule.from(*style_.pods, negated);
        }
        return style_.pods.has_value();
      case LocalDetector::Kind::InputInterface:
        rule.in_by(style_.detector.name, negated);
        return true;
      case LocalDetector::Kind::InputInterfacePrefix:
        rule.in_by(style_.detector.name + "+", negated);
        return true;
    }
    return false;
  }

  void refuse(const FrontendKey& key, const FrontendPlan& plan, const char* chain) {
    const bool nobody = plan.fate == Fate::Refuse;
    const char* const why = nobody ? " has no endpoints" : " has no local endpoints";
    const char* const target = !nobody ? "DROP"
                               : style_.family == net::Family::IPv4
                                   ? "REJECT --reject-with icmp-port-unreachable"
                                   : "REJECT --reject-with icmp6-port-unreachable";
    share(Table::Filter, chain, towards(key, name_ + why).jump(target));
  }

  void internal(const FrontendKey& key, const FrontendPlan& plan) {
    if (net::number(plan.health_check_port) != 0) {
      share(
          Table::Filter,
          kNodePorts,
          Rule()
              .protocol(net::Protocol::Tcp)
              .comment(name_ + " health check node port")
              .to_port(plan.health_check_port)
              .jump("ACCEPT"));
    }
    if (plan.fate != Fate::Balance) {
      refuse(key, plan, kServices);
      return;
    }
    const std::string& chain = plan.internal_local ? local_ : cluster_;
    const Rule rule = towards(key, name_ + " cluster IP");
    share(Table::Nat, kServices, Rule(rule).jump(chain));
    Rule masquerade = rule;
    if (style_.masquerade_all || detect(masquerade, true)) {
      out_.chains[chain].push_back(masquerade.jump(kMarkMasquerade).text());
    }
  }

  void external(const FrontendKey& key, const FrontendPlan& plan) {
    if (plan.fate != Fate::Balance) {
      refuse(key, plan, kExternalServices);
    }
    if (plan.fate == Fate::Refuse) {
      return;
    }
    if (!out_.chains.contains(external_)) {
      out_.chains.emplace(external_, rules_for_outsiders(plan));
    }
    if (desired::is_node_port(key)) {
      share(
          Table::Nat,
          kNodePorts,
          Rule().protocol(protocol_).comment(name_).to_port(key.port).jump(external_));
      return;
    }
    const Rule rule = towards(key, name_ + (plan.balancer ? " loadbalancer IP" : " external IP"));
    if (!plan.sources) {
      share(Table::Nat, kServices, Rule(rule).jump(external_));
      return;
    }
    share(Table::Nat, kServices, Rule(rule).jump(firewall_));
    share(
        Table::Filter,
        kFirewall,
        towards(key, name_ + " traffic not accepted by " + firewall_).jump("DROP"));
    if (!out_.chains.contains(firewall_)) {
      out_.chains.emplace(firewall_, rules_for_sources(*plan.sources));
    }
  }

  Rules rules_for_outsiders(const FrontendPlan& plan) const {
    Rules rules;
    const auto say = [&](std::string_view what) {
      return Rule().comment(fmt::format("{} {} external destinations", what, name_));
    };
    if (plan.reach == Reach::External) {
      rules.push_back(say("masquerade traffic for").jump(kMarkMasquerade).text());
      rules.push_back(Rule().jump(cluster_).text());
      return rules;
    }
    Rule of_pods = say("pod traffic for");
    if (plan.endpoints && detect(of_pods, false)) {
      rules.push_back(of_pods.jump(cluster_).text());
    }
    if (plan.endpoints) {
      rules.push_back(
          say("masquerade LOCAL traffic for").match(kFromHere).jump(kMarkMasquerade).text());
      rules.push_back(say("route LOCAL traffic for").match(kFromHere).jump(cluster_).text());
    }
    if (plan.fate == Fate::Balance) {
      rules.push_back(Rule().jump(local_).text());
    }
    return rules;
  }

  Rules rules_for_sources(const std::vector<net::Cidr>& sources) const {
    Rules rules;
    for (const net::Cidr& range : sources) {
      rules.push_back(
          Rule().from(range).comment(name_ + " loadbalancer IP").jump(external_).text());
    }
    rules.push_back(
        Rule()
            .comment("other traffic to " + name_ + " will be dropped by KUBE-PROXY-FIREWALL")
            .text());
    return rules;
  }

  void choose(
      const std::string& chain, const EndpointListPtr& endpoints, const FrontendPlan& plan) {
    if (!endpoints || !chosen_.insert(chain).second) {
      return;
    }
    Rules& rules = out_.chains[chain];
    const auto lead_to = [&](const net::SocketAddress& endpoint) {
      return Rule().comment(name_ + " -> " + net::to_string(endpoint));
    };
    if (plan.affinity) {
      for (const net::SocketAddress& endpoint : *endpoints) {
        const std::string to = chain_of_endpoint(name_, protocol_, endpoint);
        rules.push_back(
            lead_to(endpoint)
                .match(fmt::format(
                    "-m recent --rcheck --seconds {} --reap --name {} --mask {} --rsource",
                    plan.affinity->timeout.count(),
                    to,
                    one_client()))
                .jump(to)
                .text());
      }
    }
    std::size_t left = endpoints->size();
    for (const net::SocketAddress& endpoint : *endpoints) {
      Rule rule = lead_to(endpoint);
      if (left > 1) {
        rule.match(one_of(left));
      }
      --left;
      const std::string to = chain_of_endpoint(name_, protocol_, endpoint);
      rules.push_back(rule.jump(to).text());
      out_.chains.try_emplace(to, rules_for_endpoint(to, endpoint, plan));
    }
  }

  Rules rules_for_endpoint(
      const std::string& chain,
      const net::SocketAddress& endpoint,
      const FrontendPlan& plan) const {
    Rule hairpin;
    hairpin.from(alone(endpoint.ip)).comment(name_).jump(kMarkMasquerade);
    Rule translate;
    translate.protocol(protocol_).comment(name_);
    if (plan.affinity) {
      translate.match(
          fmt::format("-m recent --set --name {} --mask {} --rsource", chain, one_client()));
    }
    translate.match(fmt::format("-m {}", word(protocol_)))
        .jump("DNAT --to-destination " + net::to_string(endpoint));
    return {hairpin.text(), translate.text()};
  }

  const char* one_client() const {
    return style_.family == net::Family::IPv4 ? "255.255.255.255"
                                              : "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
  }

  Frontends frontends_;
  const Style& style_;
  const std::string& name_;
  net::Protocol protocol_;
  std::string cluster_;
  std::string local_;
  std::string external_;
  std::string firewall_;
  std::set<std::string> chosen_;  // chains whose endpoints are written
  PortRules out_;
};

}  // namespace

std::string_view to_string(Table table) { return table == Table::Filter ? "filter" : "nat"; }

PortRules rules_of_port(Frontends frontends, const Style& style) {
  return frontends.empty() ? PortRules() : PortWriter(frontends, style).write();
}

}  // namespace shunt::backend::iptables
