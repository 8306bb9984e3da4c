// How to take kube-proxy's chains and jumps out of tables of iptables: from the text of
// iptables-save to a text for iptables-restore --noflush. Pure.
//
// Nothing that another owner put there changes: neither a chain, nor a rule, nor the order of
// rules. A chain of kube-proxy's that somebody else's rule leads to stays as it is, with all that
// it leads to, and is named. A line that cannot be read counts as somebody else's rule about every
// chain that it names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shunt::backend::leftovers {

struct KeptChain {
  std::string chain;
  std::string rule;          // that leads to it, for a reader
  std::size_t leads_to = 0;  // other chains of kube-proxy's that stay because of it
};

struct TablePlan {
  std::string table;
  std::string restore;              // "" when nothing is to go
  std::vector<std::string> chains;  // that go, in the order of the listing
  std::size_t jumps = 0;            // that go
  std::vector<KeptChain> kept;
};

struct RemovalPlan {
  std::vector<TablePlan> tables;    // of kTables, as far as the listing has them
  std::vector<std::string> issues;  // why a table could not be planned; it stays as it is then
};

// Ours: in the tables that we use ourselves in the iptables mode, its chains are ours and stay.
enum class IptablesMode : std::uint8_t { KubeProxys, Ours };
RemovalPlan plan_removal(std::string_view save, IptablesMode mode = IptablesMode::KubeProxys);

// Whether a chain is one that would go.
bool is_leftover(std::string_view table, std::string_view chain, IptablesMode mode);

// Whether the listing has anything that plan_removal would remove or keep; cheaper.
bool has_kube_proxy_chain(std::string_view save, IptablesMode mode = IptablesMode::KubeProxys);

}  // namespace shunt::backend::leftovers
