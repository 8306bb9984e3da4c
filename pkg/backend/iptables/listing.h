// What iptables-save says of our chains, and of the jumps into them. Pure.
#pragma once

#include <map>
#include <set>
#include <string_view>

#include "backend/iptables/frame.h"
#include "base/result.h"

namespace shunt::backend::iptables {

struct Listing {
  std::map<ChainName, Rules> chains;  // of this mode: ours, or kube-proxy's, or of an earlier run
  std::set<std::size_t> jumps;        // indices into jumps(): those that are there
  bool guard_chain = false;           // KUBE-FIREWALL is there, whosever it is
  bool guard = false;                 // with guard_rule()
};

// Adds what one table says. An error when the text is not one whole table of that name; a text
// without any table is a table that does not exist yet.
Result<> read_listing(Table table, std::string_view save, Listing& into);

}  // namespace shunt::backend::iptables
