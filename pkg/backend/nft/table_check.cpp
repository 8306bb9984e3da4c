#include "backend/nft/table_check.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "backend/nft/affinity.h"

namespace shunt::backend::nft {

bool is_whole(const TableState& state, const Program& program) {
  if (state.comment != program.comment) {
    return false;
  }
  std::map<std::string, std::size_t> rules;
  for (const Chain& chain : program.chains) {
    rules.try_emplace(chain.name, 0);
  }
  for (const Rule& rule : program.rules) {
    ++rules[rule.chain];
  }
  std::set<std::string> sets;
  for (const Set& set : program.sets) {
    sets.insert(set.name);
  }
  for (const auto& [chain, count] : state.rules) {
    if (is_affinity_chain(chain)) {
      rules[chain] = affinity_chain_rules(chain);
      if (auto map = map_of_sticky_chain(chain)) {
        sets.insert(std::move(*map));
      }
    }
  }
  return state.rules == rules &&
         std::set<std::string>(state.sets.begin(), state.sets.end()) == sets;
}

}  // namespace shunt::backend::nft
