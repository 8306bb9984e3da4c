// The rules of one service port (spec/iptables.md §5): chains of its own, and single rules in
// chains that all share. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/local_detector.h"
#include "desired/frontend.h"
#include "net/cidr.h"

namespace shunt::backend::iptables {

enum class Table : std::uint8_t { Filter, Nat };
std::string_view to_string(Table table);  // "filter"

using Rules = std::vector<std::string>;  // each as iptables-save prints it behind the chain's name

struct SharedRule {
  Table table = Table::Nat;
  std::string chain;
  std::string rule;
  auto operator<=>(const SharedRule&) const = default;
};

struct PortRules {
  std::map<std::string, Rules> chains;  // of table nat
  std::set<SharedRule> shared;          // in no order
  bool operator==(const PortRules&) const = default;
};

// What the rules of every port depend on.
struct Style {
  net::Family family = net::Family::IPv4;
  bool masquerade_all = false;
  LocalDetector detector;
  std::optional<net::Cidr> pods;  // for SourceRange
  bool operator==(const Style&) const = default;
};

// All frontends of one service port and protocol; what is somebody else's is not among them.
using Frontends = std::span<const std::pair<desired::FrontendKey, const desired::FrontendPlan*>>;

PortRules rules_of_port(Frontends frontends, const Style& style);

}  // namespace shunt::backend::iptables
