// What others may see of a sync. Immutable once published.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "desired/frontend.h"
#include "net/ip_address.h"

namespace shunt::sync {

// Service ports with policy Local that have endpoints, none of them on this node
// (spec/conntrack-and-metrics.md §2).
struct WithoutLocal {
  std::size_t internal = 0;  // internalTrafficPolicy
  std::size_t external = 0;
};

struct Status {
  struct OfFamily {
    std::size_t frontends = 0;
    std::size_t set_aside = 0;  // frontends that the kernel refused
    std::size_t conflicts = 0;  // frontends that another Service has
  };
  bool synced = false;  // the first complete state was written
  bool idle = false;    // everything received is in the kernel, nothing waits for a retry
  backend::Cost cost;   // since the start
  std::map<net::Family, OfFamily> families;
  std::map<net::Family, WithoutLocal> without_local;  // as of the last run that went well
  // What others changed of ours, by the kind of thing; put back each time.
  std::map<std::pair<net::Family, std::string>, std::uint64_t> drift;
  // A frontend of each family that the kernel should have; none where there is none. Only while
  // `idle`.
  std::map<net::Family, desired::FrontendKey> canaries;
  OfFamily all() const;  // families together
  bool in_sync() const { return synced && error.empty(); }
  std::string error;  // of the last run; empty when it went well
};

inline Status::OfFamily Status::all() const {
  OfFamily out;
  for (const auto& [family, of] : families) {
    out.frontends += of.frontends;
    out.set_aside += of.set_aside;
    out.conflicts += of.conflicts;
  }
  return out;
}

}  // namespace shunt::sync
