#include "backend/nft/affinity_units.h"

#include <algorithm>

namespace shunt::backend::nft {

void AffinityUnits::adopt(const std::string& chain) { units_[chain].in_kernel = true; }

void AffinityUnits::finish_adoption(Clock::time_point now) {
  for (auto& [chain, unit] : units_) {
    unit.idle_since = now;
  }
}

void AffinityUnits::stage(const std::string& chain, Kind kind, const Affinity& affinity, int step) {
  Staged& staged = staged_[chain];
  staged.step += step;
  if (step > 0) {
    staged.kind = kind;
    staged.affinity = affinity;
  }
}

void AffinityUnits::stage(const Affinity& affinity, int step) {
  if (affinity.cluster_memory) {
    stage(sticky_chain(affinity, false), Kind::ClusterMemory, affinity, step);
  }
  if (affinity.local_memory) {
    stage(sticky_chain(affinity, true), Kind::LocalMemory, affinity, step);
  }
  stage(remember_chain(affinity), Kind::Writer, affinity, step);
}

std::optional<Clock::time_point> AffinityUnits::collection_due() const {
  std::optional<Clock::time_point> due;
  for (const auto& [chain, unit] : units_) {
    if (unit.count == 0 && unit.in_kernel) {
      const Clock::time_point at = unit.idle_since + kLinger;
      due = due ? std::min(*due, at) : at;
    }
  }
  return due;
}

void AffinityUnits::stage_collection(Clock::time_point now) {
  for (const auto& [chain, unit] : units_) {
    if (unit.count == 0 && unit.in_kernel && unit.idle_since + kLinger <= now) {
      collected_.push_back(chain);
    }
  }
}

void AffinityUnits::fill(std::vector<Fragment>& create, Removal& remove) const {
  std::vector<Fragment> writers;
  for (const auto& [chain, staged] : staged_) {
    const auto found = units_.find(chain);
    const Unit now = found == units_.end() ? Unit{} : found->second;
    if (now.count + staged.step <= 0 || now.in_kernel) {
      continue;
    }
    if (staged.kind == Kind::Writer) {
      writers.push_back(affinity_writer(staged.affinity));
    } else {
      create.push_back(affinity_memory(staged.affinity, staged.kind == Kind::LocalMemory));
    }
  }
  // Writers name the maps.
  create.insert(create.end(), writers.begin(), writers.end());
  for (const std::string& chain : collected_) {
    remove.chains.push_back(chain);
    if (const auto map = map_of_sticky_chain(chain)) {
      remove.sets.push_back(*map);
    }
  }
}

void AffinityUnits::commit(Clock::time_point now) {
  for (const auto& [chain, staged] : staged_) {
    Unit& unit = units_[chain];
    unit.count += staged.step;
    unit.in_kernel = unit.in_kernel || unit.count > 0;
    if (unit.count == 0) {
      unit.idle_since = now;
      if (!unit.in_kernel) {
        units_.erase(chain);
      }
    }
  }
  for (const std::string& chain : collected_) {
    units_.erase(chain);
  }
  discard();
}

void AffinityUnits::discard() {
  staged_.clear();
  collected_.clear();
}

}  // namespace shunt::backend::nft
