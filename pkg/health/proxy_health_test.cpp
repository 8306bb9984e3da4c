#include "health/proxy_health.h"

#include <catch2/catch_test_macros.hpp>

// What the conformance bank (kind health, proxy-health) does not ask.
namespace shunt::health {
namespace {

using net::Family;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// 2026-01-02T03:04:05Z and some.
Instant at(seconds since_start, nanoseconds fraction = nanoseconds(0)) {
  return {
      Clock::time_point(since_start),
      std::chrono::system_clock::time_point(
          std::chrono::duration_cast<std::chrono::system_clock::duration>(
              seconds(1'767'323'045) + since_start + fraction))};
}

TEST_CASE("the body is kube-proxy's: times of RFC 3339, status only when a family has one") {
  ProxyHealth health(seconds(10));
  const kube::Node node;
  health.set_node(&node);
  CHECK(
      health.healthz(at(seconds(0))).body ==
      R"({"lastUpdated":"2026-01-02T03:04:05Z","currentTime":"2026-01-02T03:04:05Z",)"
      R"("nodeEligible":true,"healthy":true})");
  health.updated(Family::IPv6, at(seconds(1), nanoseconds(120'000'000)));
  CHECK(
      health.livez(at(seconds(2), nanoseconds(1))).body ==
      R"({"lastUpdated":"2026-01-02T03:04:07.000000001Z",)"
      R"("currentTime":"2026-01-02T03:04:07.000000001Z","healthy":true,)"
      R"("status":{"IPv6":{"lastUpdated":"2026-01-02T03:04:06.12Z","healthy":true}}})");
}

TEST_CASE("without any update a Node that is not known leaves the zero time") {
  ProxyHealth health(seconds(10));
  const auto answer = health.healthz(at(seconds(0)));
  CHECK(answer.status == 503);
  CHECK(answer.body.starts_with(R"({"lastUpdated":"0001-01-01T00:00:00Z")"));
}

TEST_CASE("a family that was never updated does not count, however long its work waits") {
  ProxyHealth health(seconds(10));
  health.queued(Family::IPv4, at(seconds(0)));
  CHECK(health.livez(at(seconds(1000))).status == 200);
}

TEST_CASE("the two paths count apart") {
  ProxyHealth health(seconds(10));
  (void)health.livez(at(seconds(0)));
  (void)health.healthz(at(seconds(0)));
  (void)health.healthz(at(seconds(0)));
  CHECK(health.livez_answers() == ProxyHealth::Counters{{200, 1}});
  CHECK(health.healthz_answers() == ProxyHealth::Counters{{503, 2}});
}

TEST_CASE("a clock that is set is no delay") {
  ProxyHealth health(seconds(10));
  health.updated(Family::IPv4, at(seconds(0)));
  health.queued(Family::IPv4, at(seconds(0)));
  Instant now = at(seconds(1));
  now.wall += std::chrono::hours(5);
  CHECK(health.livez(now).status == 200);
}

}  // namespace
}  // namespace shunt::health
