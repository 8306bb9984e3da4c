#include "events/token_bucket.h"

#include <algorithm>
#include <cmath>

namespace shunt::events {

double TokenBucket::tokens_at(Clock::time_point now) const {
  const std::chrono::duration<double, std::milli> passed = now - counted_;
  const double refilled =
      std::max(0.0, passed.count()) / static_cast<double>(shape_.refill.count());
  return std::min(shape_.burst, tokens_ + refilled);
}

bool TokenBucket::take(Clock::time_point now) {
  const double tokens = tokens_at(now);
  if (tokens < 1) {
    return false;
  }
  tokens_ = tokens - 1;
  counted_ = std::max(counted_, now);
  return true;
}

Millis TokenBucket::until_next(Clock::time_point now) const {
  const double missing =
      std::max(0.0, 1 - tokens_at(now)) * static_cast<double>(shape_.refill.count());
  return Millis(static_cast<Millis::rep>(std::ceil(missing)));
}

bool TokenBucket::full(Clock::time_point now) const { return tokens_at(now) >= shape_.burst; }

}  // namespace shunt::events
