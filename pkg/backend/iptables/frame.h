// What is there whatever the Services: the jumps from the kernel's chains into ours, and the rules
// that all share (spec/iptables.md §3, §5, §6). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/iptables/port_rules.h"
#include "net/cidr.h"

namespace shunt::backend::iptables {

using ChainName = std::pair<Table, std::string>;

struct Jump {
  Table table = Table::Nat;
  std::string from;  // "INPUT"
  std::string rule;
  std::string in_other_order;
  bool to_guard = false;
};
// In kube-proxy's order: each goes to the top of its chain, so that the last one stands first.
const std::vector<Jump>& jumps();
// Versions of iptables differ in the order of matches.
bool is_written_as(const Jump& jump, std::string_view rule);

struct FrameSettings {
  net::Family family = net::Family::IPv4;
  std::uint32_t masquerade_mark = 0x4000;
  bool drop_invalid = true;
  // NodePorts at 127.0.0.0/8 as well, with route_localnet on: kube-proxy's way. IPv4 only.
  bool localhost_node_ports = false;
};

std::set<std::size_t> wanted_jumps(const FrameSettings& settings);  // indices into jumps()

// Without it route_localnet would open what listens on loopback to the neighbours. It stands in a
// chain that the kubelet has as well: the chain is never emptied nor removed, not by cleanup
// either.
const std::string& guard_rule();

// Chains whose rules are these, in this order.
std::map<ChainName, Rules> fixed_chains(const FrameSettings& settings);
// Chains whose rules come from service ports, in no order but for node_port_rules().
const std::vector<ChainName>& shared_chains();

// The end of chain KUBE-SERVICES of table nat, after all Services: where NodePorts answer. At
// loopback addresses only when the settings say so: the kernel would not route them.
Rules node_port_rules(const FrameSettings& settings, const std::vector<net::Cidr>& ranges);

}  // namespace shunt::backend::iptables
