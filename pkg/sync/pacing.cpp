#include "sync/pacing.h"

#include <algorithm>
#include <utility>

namespace shunt::sync {

Pacing::Pacing(Periods periods, Random random)
    : periods_(periods),
      backoff_({Millis{100}, Millis{15'000}, Millis{24 * 3600 * 1000}}, std::move(random)) {}

void Pacing::request_repair(Clock::time_point now) {
  if (repair_at_) {
    return;
  }
  const Clock::time_point oldest = now - kRepairBurst * kRepairInterval;
  repairs_until_ = std::max(repairs_until_, oldest) + kRepairInterval;
  repair_at_ = std::max(now, repairs_until_);
}

void Pacing::ran(Clock::time_point now, bool succeeded, bool set_aside) {
  requested_ = false;
  repair_at_.reset();
  not_before_ = now + periods_.min_interval;
  retry_at_.reset();
  if (succeeded) {
    backoff_.reset();
    if (set_aside) {
      retry_at_ = now + periods_.retry_set_aside;
    }
  } else {
    retry_at_ = now + backoff_.next(now);
  }
}

std::optional<Clock::time_point> Pacing::due(Clock::time_point now) const {
  std::optional<Clock::time_point> at = retry_at_;
  if (requested_) {
    at = std::min(at.value_or(now), now);
  }
  if (at && not_before_) {
    at = std::max(*at, *not_before_);
  }
  if (repair_at_) {
    at = std::min(at.value_or(*repair_at_), *repair_at_);
  }
  return at;
}

}  // namespace shunt::sync
