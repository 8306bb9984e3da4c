// What others may see of a sync. Immutable once published.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "backend/backend.h"
#include "net/ip_address.h"

namespace shunt::sync {

// Service ports with policy Local that have endpoints, none of them on this node
// (spec/conntrack-and-metrics.md §2).
struct WithoutLocal {
  std::size_t internal = 0;  // internalTrafficPolicy
  std::size_t external = 0;
};

struct Status {
  bool synced = false;  // the first complete state was written
  bool idle = false;    // everything received is in the kernel, nothing waits for a retry
  backend::Cost cost;   // since the start
  std::size_t frontends = 0;
  std::size_t set_aside = 0;                          // frontends that the kernel refused
  std::size_t conflicts = 0;                          // frontends that another Service has
  std::map<net::Family, WithoutLocal> without_local;  // as of the last run that went well
  std::string error;                                  // of the last run; empty when it went well
};

}  // namespace shunt::sync
