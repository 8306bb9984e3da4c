// What others may see of a sync. Immutable once published.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace shunt::sync {

struct Status {
  bool synced = false;        // the first complete state was written
  bool idle = false;          // everything received is in the kernel, nothing waits for a retry
  std::uint64_t commits = 0;  // transactions, messages and bytes since the start
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::size_t frontends = 0;
  std::size_t set_aside = 0;  // frontends that the kernel refused
  std::size_t conflicts = 0;  // frontends that another Service has
  std::string error;          // of the last run; empty when it went well
};

}  // namespace shunt::sync
