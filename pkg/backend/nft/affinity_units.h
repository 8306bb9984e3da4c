// Which of affinity's chains and maps are in the kernel, and who needs them. Part of the mirror.
//
// A chain must outlive the last element that leads to it: kernels before 6.2 keep it busy for a
// moment longer, and refuse a transaction that deletes both (spec/nftables.md §7). So what nobody
// needs is collected later, in a transaction of its own. Pure, given a clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/nft/affinity.h"
#include "backend/nft/ruleset.h"
#include "base/backoff.h"
#include "desired/frontend.h"

namespace shunt::backend::nft {

class AffinityUnits {
 public:
  static constexpr Millis kLinger{2'000};

  void adopt(const std::string& chain);  // that an earlier run left; a sticky chain has its map

  // Stages that one more (or, with -1, one less) frontend needs what `affinity` speaks of.
  void stage(const Affinity& affinity, int step);
  void stage_collection(Clock::time_point now);
  std::optional<Clock::time_point> collection_due() const;

  void fill(std::vector<Fragment>& create, Removal& remove) const;
  void commit(Clock::time_point now);
  void discard();

  // What was not needed since adoption may be collected from `now` on.
  void finish_adoption(Clock::time_point now);

 private:
  enum class Kind : std::uint8_t { ClusterMemory, LocalMemory, Writer };
  struct Unit {
    std::int64_t count = 0;
    bool in_kernel = false;
    Clock::time_point idle_since{};
  };
  struct Staged {
    std::int64_t step = 0;
    Kind kind = Kind::Writer;
    Affinity affinity;
  };
  void stage(const std::string& chain, Kind kind, const Affinity& affinity, int step);

  std::map<std::string, Unit> units_;  // by chain
  std::map<std::string, Staged> staged_;
  std::vector<std::string> collected_;  // staged
};

}  // namespace shunt::backend::nft
