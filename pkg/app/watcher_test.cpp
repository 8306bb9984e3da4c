#include "app/watcher.h"

#include <catch2/catch_test_macros.hpp>
#include <set>

namespace shunt::app {
namespace {

using net::Family;

// Ports that are open, and nothing more.
class FakeListeners : public health::Listeners {
 public:
  explicit FakeListeners(std::set<std::uint64_t>& open) : open_(open) {}
  Result<std::uint64_t> listen(const http::ListenAddress&, http::Service) override {
    open_.insert(++last_);
    return last_;
  }
  void close(std::uint64_t id) override { open_.erase(id); }

 private:
  std::set<std::uint64_t>& open_;
  std::uint64_t last_ = 0;
};

struct World {
  World() { watcher.begin({}, {}); }

  void plan(const char* service, bool with_check) {
    watcher.health_check_planned(
        Family::IPv4,
        {"ns", service},
        with_check ? std::optional(desired::HealthCheck{net::Port{30000}, 1}) : std::nullopt,
        "");
  }
  void run(bool succeeded = true) {
    sync::RunReport report;
    report.succeeded = succeeded;
    watcher.ran(Family::IPv4, report);
  }

  std::set<std::uint64_t> open;
  obs::Metrics metrics{obs::Build{}, {Family::IPv4}, {}};
  health::HealthState health{Millis{1000}};
  health::ServiceHealth services{{"here"}, std::make_unique<FakeListeners>(open)};
  Watcher watcher{{Family::IPv4}, metrics, health, services};
};

TEST_CASE("a health port opens when the kernel has the Service, not before") {
  World w;
  w.plan("a", true);
  w.run(/*succeeded=*/false);
  CHECK(w.open.empty());
  w.run();
  CHECK(w.open.size() == 1);
  w.plan("a", false);
  w.run();
  CHECK(w.open.empty());
}

TEST_CASE("a health port stays open from one generation to the next, unless its Service went") {
  World w;
  w.plan("stays", true);
  w.plan("goes", true);
  w.run();
  REQUIRE(w.open.size() == 2);
  const auto before = w.open;

  w.watcher.begin({}, {});
  w.plan("stays", true);
  CHECK(w.open == before);
  w.run(/*succeeded=*/false);
  CHECK(w.open == before);
  w.run();
  CHECK(w.open.size() == 1);
  CHECK(before.contains(*w.open.begin()));
}

TEST_CASE("who keeps up is healthy, and work that waits too long is not") {
  World w;
  CHECK(w.health.healthy());
  w.watcher.queued();
  CHECK(w.health.healthy());
  CHECK_FALSE(w.health.healthy(Clock::now() + std::chrono::seconds(2)));
  w.run();
  CHECK(w.health.healthy(Clock::now() + std::chrono::hours(1)));
}

}  // namespace
}  // namespace shunt::app
