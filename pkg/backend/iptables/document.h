// One input of iptables-restore --noflush, put together from changes in any order. Its size is that
// of the changes: chains that are not named stay as they are.
//
// Three commits at most, each whole or not at all, in the order that lets no packet through a gap:
// refusals that come (filter), then Services (nat), then refusals that go (filter). Within a
// commit: chains come, rules come, rules go, chains go. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "backend/iptables/frame.h"

namespace shunt::backend::iptables {

class Document {
 public:
  void add_chain(const ChainName& chain);                        // or empties it
  void add_new_chain(const ChainName& chain);                    // refused when it is there by then
  void write_chain(const ChainName& chain, const Rules& rules);  // whole, in place of what it holds
  void add_first(const ChainName& chain, std::string_view rule);
  void add_last(const ChainName& chain, std::string_view rule);
  void add_at_end(const ChainName& chain, std::string_view rule);  // after all that add_last() adds
  void remove(const ChainName& chain, std::string_view rule);      // must be there
  void remove_chain(const ChainName& chain);                       // that nothing leads to any more

  std::size_t rules_written(Table table) const { return written_[static_cast<std::size_t>(table)]; }
  bool empty() const { return changes_ == 0; }
  std::size_t commits() const;
  std::size_t changes() const { return changes_; }  // rules and chains
  const std::vector<ChainName>& chains_that_go() const { return chains_that_go_; }
  // `keep_chains`: those are emptied only.
  std::string text(bool keep_chains = false) const;

 private:
  struct Commit {
    bool empty() const { return chains.empty() && rules.empty() && ends.empty() && gone.empty(); }
    std::string chains;
    std::string rules;
    std::string ends;
    std::string gone;
    std::string gone_chains;
  };
  static void print(
      std::string_view table, const Commit& commit, bool keep_chains, std::string& out);

  // Of each table what comes; what goes of filter stands alone.
  std::array<Commit, 3> commits_;  // filter, nat, filter
  std::vector<ChainName> chains_that_go_;
  std::size_t changes_ = 0;
  std::array<std::size_t, 2> written_{};  // rules, by table
};

}  // namespace shunt::backend::iptables
