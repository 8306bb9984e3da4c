// Waiting on a descriptor until it is ready, until a time, or until stop is asked.
#pragma once

#include <cstdint>

#include "base/backoff.h"
#include "base/result.h"

namespace shunt::apiserver {

struct Deadline {
  Clock::time_point at;
  int stop_fd = -1;  // readable for ever once stop was asked; -1: nobody asks

  static Deadline in(Millis delay, int stop_fd) { return {Clock::now() + delay, stop_fd}; }
};

enum class Readiness : std::uint8_t { Read, Write };

// Errors: ETIMEDOUT, ECANCELED (stop was asked, which wins over readiness).
Result<> wait_until_ready(int fd, Readiness readiness, const Deadline& deadline);

bool stop_asked(int stop_fd);

}  // namespace shunt::apiserver
