// A bound on how often something may happen: bursts up to a size, and a slow refill. Pure.
#pragma once

#include "base/backoff.h"

namespace shunt::events {

class TokenBucket {
 public:
  struct Shape {
    double burst = 1;
    Millis refill{1000};  // the time that one token takes to come back
  };
  TokenBucket(Shape shape, Clock::time_point now)
      : shape_(shape), tokens_(shape.burst), counted_(now) {}

  bool take(Clock::time_point now);                // false: not now
  Millis until_next(Clock::time_point now) const;  // 0: take() would succeed
  bool full(Clock::time_point now) const;          // as good as a new one

 private:
  double tokens_at(Clock::time_point now) const;

  Shape shape_;
  double tokens_;
  Clock::time_point counted_;
};

}  // namespace shunt::events
