#include "backend/iptables/kernel_rules.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "backend/iptables/names.h"

namespace shunt::backend::iptables {
namespace {

const ChainName& services_chain() {
  static const ChainName name{Table::Nat, kServices};
  return name;
}

// Rules of KUBE-SERVICES in nat stand before its end, where NodePorts are, if it has one; the order
// of all others is of no meaning. (iptables-nft takes the square of their number to insert many.)
void add(const SharedRule& rule, bool has_end, Document& document) {
  const ChainName chain{rule.table, rule.chain};
  has_end&& chain == services_chain() ? document.add_first(chain, rule.rule)
                                      : document.add_last(chain, rule.rule);
}

bool leads_to_node_ports(std::string_view rule) {
  return rule.ends_with(std::string(" -j ").append(kNodePorts));
}

std::array<std::size_t, 2> rules_in(const PortRules& port) {
  std::array<std::size_t, 2> out{};
  for (const auto& [chain, rules] : port.chains) {
    out[static_cast<std::size_t>(Table::Nat)] += rules.size();
  }
  for (const SharedRule& rule : port.shared) {
    ++out[static_cast<std::size_t>(rule.table)];
  }
  return out;
}

// The rules of one chain as they stand, of which one after the other finds its owner.
class Claims {
 public:
  explicit Claims(const Rules& rules) : claimed_(rules.size(), false) {
    for (std::size_t i = 0; i < rules.size(); ++i) {
      places_.emplace(rules[i], i);
    }
  }

  bool claim(std::string_view rule) {
    const auto found = places_.find(rule);
    if (found == places_.end()) {
      return false;
    }
    claimed_[found->second] = true;
    places_.erase(found);
    return true;
  }
  bool is_claimed(std::size_t place) const { return claimed_[place]; }

 private:
  std::multimap<std::string_view, std::size_t> places_;
  std::vector<bool> claimed_;
};

// The last rules that nobody has claimed are these: what stands between them is a stray.
bool ends_with(const Rules& rules, const Claims& claims, const Rules& end) {
  std::size_t left = end.size();
  for (std::size_t i = rules.size(); i > 0 && left > 0; --i) {
    if (claims.is_claimed(i - 1)) {
      return false;
    }
    left -= rules[i - 1] == end[left - 1] ? 1 : 0;
  }
  return left == 0;
}

}  // namespace

const PortRules& KernelRules::port(const PortId& id) const {
  static const PortRules none;
  const auto found = ports_.find(id);
  return found == ports_.end() ? none : found->second;
}

void KernelRules::take_in(Listing listing, const Wanted& wanted, const Rules* node_ports) {
  frame_ = {};
  strays_ = {};
  ports_.clear();
  rules_of_ports_ = {};
  frame_.jumps = std::move(listing.jumps);
  frame_.guard_chain = listing.guard_chain;
  frame_.guard = listing.guard;

  std::map<ChainName, Claims> claims;
  for (const ChainName& chain : shared_chains()) {
    if (const auto found = listing.chains.find(chain); found != listing.chains.end()) {
      frame_.shared.insert(chain);
      claims.emplace(chain, found->second);
    }
  }
  std::set<ChainName> owned;
  for (const auto& [id, rules] : wanted) {
    PortRules there;
    for (const auto& [chain, own] : rules.chains) {
      const auto found = listing.chains.find({Table::Nat, chain});
      if (found != listing.chains.end()) {
        there.chains.emplace(chain, found->second);
        owned.insert(found->first);
      }
    }
    for (const SharedRule& rule : rules.shared) {
      const auto found = claims.find({rule.table, rule.chain});
      if (found != claims.end() && found->second.claim(rule.rule)) {
        there.shared.insert(rule);
      }
    }
    put(id, std::move(there));
  }
  if (const auto found = claims.find(services_chain()); found != claims.end()) {
    const Rules& rules = listing.chains.at(services_chain());
    if (node_ports == nullptr) {
      std::ranges::copy_if(rules, std::back_inserter(frame_.node_ports), leads_to_node_ports);
    } else if (ends_with(rules, found->second, *node_ports)) {
      frame_.node_ports = *node_ports;
    }
    for (const std::string& rule : frame_.node_ports) {
      found->second.claim(rule);
    }
  }
  for (auto& [chain, rules] : listing.chains) {
    const auto shared = claims.find(chain);
    if (shared != claims.end()) {
      for (std::size_t i = 0; i < rules.size(); ++i) {
        if (!shared->second.is_claimed(i)) {
          strays_.rules.emplace_back(chain, rules[i]);
        }
      }
    } else if (
        chain.second == kPostrouting || chain.second == kMarkMasquerade ||
        chain.second == kForward) {
      frame_.fixed.emplace(chain, std::move(rules));
    } else if (!owned.contains(chain)) {
      strays_.chains.insert(chain);
    }
  }
}

void KernelRules::differ(const Frame& wanted, Document& document) const {
  for (const ChainName& chain : wanted.shared) {
    if (!frame_.shared.contains(chain)) {
      document.add_chain(chain);
    }
  }
  for (const auto& [chain, rules] : wanted.fixed) {
    const auto found = frame_.fixed.find(chain);
    if (found == frame_.fixed.end() || found->second != rules) {
      document.write_chain(chain, rules);
    }
  }
  const ChainName guard{Table::Filter, kGuard};
  if (wanted.guard_chain && !frame_.guard_chain) {
    document.add_new_chain(guard);
  }
  if (wanted.guard && !frame_.guard) {
    document.add_last(guard, guard_rule());
  }
  for (const std::size_t index : wanted.jumps) {
    if (!frame_.jumps.contains(index)) {
      const Jump& jump = jumps()[index];
      document.add_first({jump.table, jump.from}, jump.rule);
    }
  }
  if (wanted.node_ports != frame_.node_ports) {
    for (const std::string& rule : wanted.node_ports) {
      document.add_at_end(services_chain(), rule);
    }
    for (const std::string& rule : frame_.node_ports) {
      document.remove(services_chain(), rule);
    }
  }
}

void KernelRules::differ(const PortId& id, const PortRules& wanted, Document& document) const {
  const PortRules& there = port(id);
  for (const auto& [chain, rules] : wanted.chains) {
    const auto found = there.chains.find(chain);
    if (found == there.chains.end() || found->second != rules) {
      document.write_chain({Table::Nat, chain}, rules);
    }
  }
  for (const auto& [chain, rules] : there.chains) {
    if (!wanted.chains.contains(chain)) {
      document.remove_chain({Table::Nat, chain});
    }
  }
  for (const SharedRule& rule : wanted.shared) {
    if (!there.shared.contains(rule)) {
      add(rule, !frame_.node_ports.empty(), document);
    }
  }
  for (const SharedRule& rule : there.shared) {
    if (!wanted.shared.contains(rule)) {
      document.remove({rule.table, rule.chain}, rule.rule);
    }
  }
}

void KernelRules::remove_strays(Document& document) const {
  for (const auto& [chain, rule] : strays_.rules) {
    document.remove(chain, rule);
  }
  for (const ChainName& chain : strays_.chains) {
    document.remove_chain(chain);
  }
}

void KernelRules::put(const PortId& id, PortRules rules) {
  const auto before = rules_in(port(id));
  const auto now = rules_in(rules);
  for (std::size_t table = 0; table < now.size(); ++table) {
    rules_of_ports_[table] += now[table] - before[table];
  }
  if (rules == PortRules()) {
    ports_.erase(id);
  } else {
    ports_.insert_or_assign(id, std::move(rules));
  }
}

void KernelRules::applied(const PortId& id, PortRules rules) { put(id, std::move(rules)); }

std::size_t KernelRules::rules(Table table) const {
  std::size_t out = rules_of_ports_[static_cast<std::size_t>(table)];
  for (const auto& [chain, rules] : frame_.fixed) {
    out += chain.first == table ? rules.size() : 0;
  }
  for (const std::size_t index : frame_.jumps) {
    out += jumps()[index].table == table ? 1 : 0;
  }
  return out + (table == Table::Nat ? frame_.node_ports.size() : frame_.guard ? 1 : 0);
}

std::map<ChainName, std::multiset<std::string_view>> KernelRules::shared_rules() const {
  std::map<ChainName, std::multiset<std::string_view>> out;
  for (const ChainName& chain : frame_.shared) {
    out[chain];
  }
  for (const auto& [id, rules] : ports_) {
    for (const SharedRule& rule : rules.shared) {
      out[{rule.table, rule.chain}].insert(rule.rule);
    }
  }
  for (const std::string& rule : frame_.node_ports) {
    out[services_chain()].insert(rule);
  }
  return out;
}

std::vector<Drift> KernelRules::compare(const Listing& listing, bool words_differ) const {
  std::vector<Drift> out;
  const auto note = [&](const char* kind, const std::string& name, bool removed) {
    out.push_back({kind, name, removed, 1, ""});
  };
  for (const std::size_t index : frame_.jumps) {
    if (!listing.jumps.contains(index)) {
      note("rule", jumps()[index].from, true);
    }
  }
  if (frame_.guard && !listing.guard) {
    note("rule", kGuard, true);
  }
  const auto find = [&](const ChainName& chain) -> const Rules* {
    const auto found = listing.chains.find(chain);
    if (found == listing.chains.end()) {
      note("chain", chain.second, true);
      return nullptr;
    }
    return &found->second;
  };
  std::size_t known = 0;
  const auto look_at = [&](const ChainName& chain, const Rules& rules) {
    ++known;
    const Rules* there = find(chain);
    if (there != nullptr && (words_differ ? there->size() != rules.size() : *there != rules)) {
      note("rule", chain.second, there->size() < rules.size());
    }
  };
  for (const auto& [chain, rules] : frame_.fixed) {
    look_at(chain, rules);
  }
  for (const auto& [id, port] : ports_) {
    for (const auto& [chain, rules] : port.chains) {
      look_at({Table::Nat, chain}, rules);
    }
  }
  for (const auto& [chain, rules] : shared_rules()) {
    ++known;
    const Rules* there = find(chain);
    if (there == nullptr) {
      continue;
    }
    bool same = there->size() == rules.size();
    if (same && !words_differ) {
      same = std::ranges::all_of(
          *there, [&wanted = rules](const std::string& rule) { return wanted.contains(rule); });
      // Where NodePorts answer is the end, whatever stands before.
      same = same &&
             (chain != services_chain() ||
              std::equal(frame_.node_ports.rbegin(), frame_.node_ports.rend(), there->rbegin()));
    }
    if (!same) {
      note("rule", chain.second, there->size() < rules.size());
    }
  }
  if (out.empty() && listing.chains.size() > known + strays_.chains.size()) {
    note("chain", "of kube-proxy's", false);
  }
  return out;
}

}  // namespace shunt::backend::iptables
