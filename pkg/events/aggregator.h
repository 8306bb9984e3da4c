// Which notices become requests (spec/conntrack-and-metrics.md §6): the first of its kind is an
// Event, the second makes it a series, later ones only count. What each object may cause besides is
// bounded, so that one that flaps costs the API server little. Pure: time and randomness are
// arguments.
//
// Two notices are of one kind when all but their note is the same.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "events/event.h"
#include "events/token_bucket.h"

namespace shunt::events {

struct Times {
  WallTime wall;             // what is written
  Clock::time_point steady;  // what is measured
};

class Aggregator {
 public:
  static constexpr std::size_t kMaxEvents = 4096;  // known at a time, and objects that are bounded
  static constexpr std::chrono::minutes kFinishAfter{6};
  static constexpr std::chrono::minutes kRefreshAfter{30};
  // client-go's bound for each source and object.
  static constexpr TokenBucket::Shape kBound{.burst = 25, .refill = std::chrono::minutes(5)};

  explicit Aggregator(Random random) : random_(std::move(random)) {}

  // What is to be sent now: a new Event, or one that has just become a series.
  std::optional<Event> take(const kube::Notice& notice, Times now);

  // Once a minute or so: series whose last count is not known to the server, because they are over
  // (nothing for six minutes) or because half an hour has passed. What is over is forgotten.
  std::vector<Event> upkeep(Times now);

  std::uint64_t bounded() const { return bounded_; }  // Events that an object was not allowed
  std::size_t known() const { return known_.size(); }

 private:
  struct Object {
    kube::Notice::Kind kind;
    kube::ObjectKey key;
    auto operator<=>(const Object&) const = default;
  };
  struct Same {
    Object object;
    std::string uid;
    std::string reason;
    std::string action;
    bool warning;
    auto operator<=>(const Same&) const = default;
  };
  struct Known {
    Event event;
    Clock::time_point seen;  // the last time
    Clock::time_point told;
    std::int64_t told_count = 1;
  };

  bool allowed(const Object& object, Clock::time_point now);

  Random random_;
  std::map<Same, Known> known_;
  std::map<Object, TokenBucket> bounds_;
  std::uint64_t bounded_ = 0;
};

}  // namespace shunt::events
