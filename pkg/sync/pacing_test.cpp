#include "sync/pacing.h"

#include <catch2/catch_test_macros.hpp>

namespace shunt::sync {
namespace {

using std::chrono::seconds;

constexpr auto kNoJitter = [] { return 0.0; };

TEST_CASE("a request is due at once, but not sooner than the shortest interval") {
  Pacing pacing({Millis{1000}, Millis{30'000}}, kNoJitter);
  const Clock::time_point t0{seconds(1000)};
  CHECK_FALSE(pacing.due(t0));
  pacing.request();
  CHECK(pacing.due(t0) == t0);
  pacing.ran(t0, true, false);
  CHECK_FALSE(pacing.due(t0));
  pacing.request();
  CHECK(pacing.due(t0 + Millis{1}) == t0 + seconds(1));
  CHECK(pacing.due(t0 + seconds(5)) == t0 + seconds(5));
}

TEST_CASE("a failure is tried again on its own, later and later, and a success forgets it") {
  Pacing pacing({Millis{0}, Millis{30'000}}, kNoJitter);
  const Clock::time_point t0{seconds(1000)};
  pacing.ran(t0, false, false);
  CHECK(pacing.due(t0) == t0 + Millis{100});
  pacing.ran(t0, false, false);
  CHECK(pacing.due(t0) == t0 + Millis{200});
  pacing.ran(t0, true, false);
  CHECK_FALSE(pacing.due(t0));
  pacing.ran(t0, false, false);
  CHECK(pacing.due(t0) == t0 + Millis{100});
}

TEST_CASE("a new request does not wait for a retry") {
  Pacing pacing({Millis{0}, Millis{30'000}}, kNoJitter);
  const Clock::time_point t0{seconds(1000)};
  pacing.ran(t0, false, false);
  pacing.request();
  CHECK(pacing.due(t0) == t0);
}

TEST_CASE("what the kernel refused is tried again now and then") {
  Pacing pacing({Millis{0}, Millis{30'000}}, kNoJitter);
  const Clock::time_point t0{seconds(1000)};
  pacing.ran(t0, true, true);
  CHECK(pacing.due(t0) == t0 + seconds(30));
}

TEST_CASE("a repair does not wait for the shortest interval, and many slow down") {
  Pacing pacing({Millis{60'000}, Millis{30'000}}, kNoJitter);
  Clock::time_point now{seconds(1000)};
  pacing.ran(now, true, false);
  for (int i = 0; i < Pacing::kRepairBurst; ++i) {
    pacing.request_repair(now);
    CHECK(pacing.requested());
    REQUIRE(pacing.due(now) == now);
    pacing.ran(now, true, false);
    CHECK_FALSE(pacing.requested());
  }
  pacing.request_repair(now);
  CHECK(pacing.due(now) == now + Pacing::kRepairInterval);
  now += 2 * Pacing::kRepairInterval;  // one was taken meanwhile, one has come back
  pacing.ran(now, true, false);
  pacing.request_repair(now);
  CHECK(pacing.due(now) == now);
}

TEST_CASE("a repair does not hurry what was only requested beyond its own run") {
  Pacing pacing({Millis{1000}, Millis{30'000}}, kNoJitter);
  const Clock::time_point now{seconds(1000)};
  pacing.ran(now, true, false);
  pacing.request();
  pacing.request_repair(now);
  CHECK(pacing.due(now) == now);
  pacing.ran(now, true, false);
  CHECK_FALSE(pacing.due(now));
}

}  // namespace
}  // namespace shunt::sync
