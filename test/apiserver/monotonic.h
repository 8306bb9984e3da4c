// The clock that benchmarks compare across processes of one machine.
#pragma once

#include <cstdint>
#include <ctime>

namespace shunt::test_api {

inline std::int64_t monotonic_ns() {
  timespec now{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &now);  // cannot fail
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace shunt::test_api
