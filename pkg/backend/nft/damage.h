// What others may have broken of our table: gathered from the kernel's notifications until the next
// apply() mends it. Pure, but for examine().
//
// The cost of mending follows what was touched: elements of a frontend are looked up by their keys
// and compared with its plan; rules are constant, so all are written anew; interval sets are small
// and written anew; only when a set or the table itself went, or when notifications were lost, the
// table is read again.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/nft/change_feed.h"
#include "backend/nft/kernel_mirror.h"
#include "backend/nft/transport.h"

namespace shunt::backend::nft {

struct Damage {
  // More frontends than this are not looked up one by one.
  static constexpr std::size_t kMostFrontends = 2'000;

  bool everything = false;
  bool rules = false;
  std::set<std::string> chains;  // in our table, and not of the program
  // Slots that were named, by frontend; the rest of the frontend is looked at all the same.
  using Slots = std::set<std::uint32_t>;
  std::map<desired::FrontendKey, Slots> frontends;
  std::set<net::IpAddress> cluster_ips;
  std::set<desired::FrontendKey> affinity_local;
  std::set<SetId> intervals;  // sets of ranges

  bool any() const;
  // Returns what was found, for people. Elements of sets that packets write are nobody's fault.
  std::vector<Drift> add(const Program& program, const ForeignChanges& seen);

 private:
  bool add_element(const Program& program, const ForeignChange& change);
  bool add(const Program& program, const ForeignChange& change);
};

// Looks at the kernel's elements of what is damaged, and makes the mirror true of them.
Result<> examine(
    Transport& transport, const Program& program, const Damage& damage, KernelMirror& mirror);

}  // namespace shunt::backend::nft
