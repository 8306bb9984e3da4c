#include "backend/iptables/document.h"

#include <algorithm>

namespace shunt::backend::iptables {
namespace {

enum Part : std::size_t { FilterComes, Nat, FilterGoes };

Part part_of_coming(Table table) { return table == Table::Filter ? FilterComes : Nat; }
Part part_of_going(Table table) { return table == Table::Filter ? FilterGoes : Nat; }

void line(std::string& out, std::string_view verb, std::string_view chain, std::string_view rule) {
  out.append(verb).append(" ").append(chain);
  if (!rule.empty()) {
    out.append(" ").append(rule);
  }
  out.append("\n");
}

}  // namespace

void Document::add_chain(const ChainName& chain) {
  commits_[part_of_coming(chain.first)]
      .chains.append(":")
      .append(chain.second)
      .append(" - [0:0]\n");
  ++changes_;
}

void Document::add_new_chain(const ChainName& chain) {
  line(commits_[part_of_coming(chain.first)].rules, "-N", chain.second, "");
  ++changes_;
}

void Document::write_chain(const ChainName& chain, const Rules& rules) {
  add_chain(chain);
  for (const std::string& rule : rules) {
    add_last(chain, rule);
  }
}

void Document::add_first(const ChainName& chain, std::string_view rule) {
  ++written_[static_cast<std::size_t>(chain.first)];
  line(commits_[part_of_coming(chain.first)].rules, "-I", chain.second, rule);
  ++changes_;
}

void Document::add_last(const ChainName& chain, std::string_view rule) {
  ++written_[static_cast<std::size_t>(chain.first)];
  line(commits_[part_of_coming(chain.first)].rules, "-A", chain.second, rule);
  ++changes_;
}

void Document::add_at_end(const ChainName& chain, std::string_view rule) {
  ++written_[static_cast<std::size_t>(chain.first)];
  line(commits_[part_of_coming(chain.first)].ends, "-A", chain.second, rule);
  ++changes_;
}

void Document::remove(const ChainName& chain, std::string_view rule) {
  line(commits_[part_of_going(chain.first)].gone, "-D", chain.second, rule);
  ++changes_;
}

void Document::remove_chain(const ChainName& chain) {
  Commit& commit = commits_[part_of_going(chain.first)];
  commit.chains.append(":").append(chain.second).append(" - [0:0]\n");
  line(commit.gone_chains, "-X", chain.second, "");
  chains_that_go_.push_back(chain);
  ++changes_;
}

void Document::print(
    std::string_view table, const Commit& commit, bool keep_chains, std::string& out) {
  if (commit.empty()) {
    return;
  }
  out.append("*").append(table).append("\n");
  out.append(commit.chains).append(commit.rules).append(commit.ends).append(commit.gone);
  if (!keep_chains) {
    out.append(commit.gone_chains);
  }
  out.append("COMMIT\n");
}

std::size_t Document::commits() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(commits_, [](const Commit& commit) { return !commit.empty(); }));
}

std::string Document::text(bool keep_chains) const {
  std::string out;
  print("filter", commits_[FilterComes], keep_chains, out);
  print("nat", commits_[Nat], keep_chains, out);
  print("filter", commits_[FilterGoes], keep_chains, out);
  return out;
}

}  // namespace shunt::backend::iptables
