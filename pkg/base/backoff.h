// Delays between attempts: doubling, capped, jittered; time and randomness are arguments.
#pragma once

#include <chrono>
#include <functional>

namespace shunt {

using Clock = std::chrono::steady_clock;
using Millis = std::chrono::milliseconds;

// Returns a number in [0, 1).
using Random = std::function<double()>;
Random seeded_random();  // for programs; tests pass their own

// spec/api-objects.md §8: 0.8 s, 1.6 s ... 25.6 s, then 30 s; each wait uniform in [d, 2d); the
// sequence starts again when more than two minutes have passed since it last started.
class Backoff {
 public:
  struct Shape {
    Millis first{800};
    Millis cap{30'000};
    Millis restart_after{120'000};
  };
  Backoff(Shape shape, Random random);

  Millis next(Clock::time_point now);
  void reset();

 private:
  Shape shape_;
  Random random_;
  Millis delay_{0};
  Clock::time_point started_{};
};

}  // namespace shunt
