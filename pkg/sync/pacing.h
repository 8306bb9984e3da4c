// When the sync loop may run: at once when something changed, not sooner than minSyncPeriod after
// the last run, and again on its own after a failure (spec/config.md §11). Pure, given a clock.
#pragma once

#include <optional>

#include "base/backoff.h"

namespace shunt::sync {

class Pacing {
 public:
  struct Periods {
    Millis min_interval{0};          // between the end of a run and the next
    Millis retry_set_aside{30'000};  // how often what the kernel refused is tried again
  };
  // Retries after a failure start at 100 ms and double up to 30 s: nobody wants to wait for a table
  // that a busy kernel refused once.
  Pacing(Periods periods, Random random);

  void request() { requested_ = true; }
  // Others broke what is ours: at once, whatever the shortest interval. Who does that again and
  // again must not keep a core busy: after kRepairBurst repairs it is one in kRepairInterval. What
  // is flushed in one go may be heard of in two, and takes as many repairs then.
  void request_repair(Clock::time_point now);
  bool requested() const { return requested_ || repair_at_; }
  void ran(Clock::time_point now, bool succeeded, bool set_aside);

  // When to run next; nothing: only when requested.
  std::optional<Clock::time_point> due(Clock::time_point now) const;

  static constexpr int kRepairBurst = 64;
  static constexpr Millis kRepairInterval{1'000};

 private:
  Periods periods_;
  Backoff backoff_;
  bool requested_ = false;
  std::optional<Clock::time_point> repair_at_;
  Clock::time_point repairs_until_{};  // each repair takes up one interval
  std::optional<Clock::time_point> not_before_;
  std::optional<Clock::time_point> retry_at_;
};

}  // namespace shunt::sync
