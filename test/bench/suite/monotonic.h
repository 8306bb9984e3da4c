// The clock that the API server's X-Sent-Ns, the kernel's notifications and the probes share.
#pragma once

#include <chrono>
#include <cstdint>

namespace shunt::bench {

// CLOCK_MONOTONIC, which is what steady_clock is here.
using Nanoseconds = std::int64_t;

inline Nanoseconds now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
inline double milliseconds_between(Nanoseconds begin, Nanoseconds end) {
  return static_cast<double>(end - begin) / 1e6;
}
inline double seconds(Nanoseconds duration) { return static_cast<double>(duration) / 1e9; }

}  // namespace shunt::bench
