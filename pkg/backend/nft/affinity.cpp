#include "backend/nft/affinity.h"

#include <algorithm>
#include <array>
#include <utility>

#include "backend/nft/program_sets.h"
#include "backend/nft/rule_writer.h"

namespace shunt::backend::nft {
namespace {

constexpr std::string_view kMapPrefix = "affinity-";
constexpr std::string_view kStickyPrefix = "sticky-";
constexpr std::string_view kRememberPrefix = "remember-";
constexpr std::string_view kBoth = "-both";
constexpr std::string_view kLocalOnly = "-local";

// "10.96.0.1-tcp-80", "fd00..1-tcp-80-to-8080"; nft's names have no colons.
std::string group_name(const Affinity& affinity) {
  const desired::FrontendKey& group = affinity.group;
  std::string ip = net::to_string(group.ip);
  std::replace(ip.begin(), ip.end(), ':', '.');
  std::string protocol(net::to_string(group.protocol));
  std::transform(protocol.begin(), protocol.end(), protocol.begin(), [](char c) {
    return static_cast<char>(c - 'A' + 'a');
  });
  const std::string to =
      affinity.port ? "-to-" + std::to_string(net::number(*affinity.port)) : std::string();
  return ip + "-" + protocol + "-" + std::to_string(net::number(group.port)) + to;
}

std::string memory_name(std::string_view prefix, const Affinity& affinity, bool local) {
  return std::string(prefix) + (local ? "local-" : "") + group_name(affinity);
}

std::vector<std::uint8_t> network_order(net::Port port) {
  const std::uint16_t number = net::number(port);
  return {static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number)};
}

}  // namespace

std::optional<Affinity> affinity_of(const desired::FrontendPlan& plan) {
  if (!plan.affinity || (!plan.endpoints && !plan.local_endpoints)) {
    return std::nullopt;
  }
  Affinity out{*plan.affinity, std::nullopt};
  if (out.group.ip.family == net::Family::IPv4) {
    return out;
  }
  std::optional<net::Port> port;
  for (const desired::EndpointListPtr& list : {plan.endpoints, plan.local_endpoints}) {
    for (std::size_t i = 0; list && i < list->size(); ++i) {
      if (port && *port != (*list)[i].port) {
        return out;  // several
      }
      port = (*list)[i].port;
    }
  }
  out.port = port;
  return out;
}

std::string affinity_map(const Affinity& affinity, bool local) {
  return memory_name(kMapPrefix, affinity, local);
}
std::string sticky_chain(const Affinity& affinity, bool local) {
  return memory_name(kStickyPrefix, affinity, local);
}
std::string remember_chain(const Affinity& affinity) {
  std::string name = std::string(kRememberPrefix) + group_name(affinity) + "-" +
                     std::to_string(affinity.timeout.count()) + "s";
  if (affinity.local_memory) {
    name += affinity.cluster_memory ? kBoth : kLocalOnly;
  }
  return name;
}

Fragment affinity_memory(const Affinity& affinity, bool local) {
  const RuleWriter writer(affinity.group.ip.family);
  Fragment out;
  Set map;
  map.name = affinity_map(affinity, local);
  map.shape = KeyShape::Address;
  map.holds = affinity.port ? Set::Holds::Addresses : Set::Holds::Endpoints;
  map.size = kDynamicSetSize;
  Expressions rule =
      protocol_is(affinity.group.protocol) + Expressions{writer.source(1), Lookup{map.name, 1, 1}};
  if (affinity.port) {
    rule.emplace_back(LoadImmediate{RuleWriter::kDataRegister, network_order(*affinity.port)});
    rule.emplace_back(DestinationNat{1, RuleWriter::kDataRegister});
  } else {
    rule.emplace_back(DestinationNat{1, writer.port_of_nat()});
  }
  const std::string chain = sticky_chain(affinity, local);
  out.sets.push_back(std::move(map));
  out.chains.push_back({chain, {}});
  out.rules.push_back({chain, std::move(rule), {}});
  return out;
}

Fragment affinity_writer(const Affinity& affinity) {
  const RuleWriter writer(affinity.group.ip.family);
  const std::string chain = remember_chain(affinity);
  Fragment out;
  out.chains.push_back({chain, {}});
  const auto remember = [&](const Expressions& condition, bool local) {
    Expressions rule = protocol_is(affinity.group.protocol) + condition;
    if (affinity.port) {
      rule.emplace_back(LoadCt{LoadCt::Key::ReplyPort, 1});
      rule.emplace_back(Compare{Compare::Op::Equal, 1, network_order(*affinity.port)});
      rule.emplace_back(writer.source(1));
      rule.emplace_back(LoadCt{LoadCt::Key::ReplySource, RuleWriter::kDataRegister});
    } else {
      rule.emplace_back(writer.source(1));
      rule = std::move(rule) + writer.answering_endpoint_as_data();
    }
    rule.emplace_back(
        UpdateSet{affinity_map(affinity, local), 1, RuleWriter::kDataRegister, affinity.timeout});
    out.rules.push_back({chain, std::move(rule), {}});
  };
  if (affinity.cluster_memory) {
    remember({}, false);
  }
  if (affinity.local_memory) {
    // Policy Cluster may have chosen an endpoint elsewhere.
    remember(
        affinity.cluster_memory
            ? writer.answering_endpoint() + Expressions{member("affinity-local")}
            : Expressions{},
        true);
  }
  return out;
}

bool is_affinity_map(std::string_view set) {
  return set.starts_with(kMapPrefix) && set != "affinity-local";
}
bool is_affinity_chain(std::string_view chain) {
  return chain.starts_with(kStickyPrefix) || chain.starts_with(kRememberPrefix);
}
std::size_t affinity_chain_rules(std::string_view chain) {
  return chain.starts_with(kRememberPrefix) && chain.ends_with(kBoth) ? 2 : 1;
}
std::optional<std::string> map_of_sticky_chain(std::string_view chain) {
  if (!chain.starts_with(kStickyPrefix)) {
    return std::nullopt;
  }
  return std::string(kMapPrefix) + std::string(chain.substr(kStickyPrefix.size()));
}

Fragment affinity_sample(net::Family family) {
  Affinity affinity;
  affinity.timeout = std::chrono::seconds(1);
  affinity.group = {net::IpAddress{family, {}}, net::Protocol::Tcp, net::Port{1}};
  affinity.local_memory = true;
  Fragment out;
  for (const auto port : {std::optional<net::Port>(), std::optional(net::Port{1})}) {
    affinity.port = port;
    for (Fragment& part : std::array{affinity_memory(affinity, false), affinity_writer(affinity)}) {
      out.rules.insert(out.rules.end(), part.rules.begin(), part.rules.end());
    }
  }
  return out;
}

}  // namespace shunt::backend::nft
