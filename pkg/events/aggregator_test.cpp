#include "events/aggregator.h"

#include <catch2/catch_test_macros.hpp>

namespace shunt::events {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class World {
 public:
  World() : aggregator([] { return 0.5; }) {}
  std::optional<Event> take(const kube::Notice& notice) { return aggregator.take(notice, now()); }
  std::vector<Event> upkeep() { return aggregator.upkeep(now()); }
  Times now() const { return {WallTime(seconds(1'000'000)) + passed, Clock::time_point(passed)}; }

  Aggregator aggregator;
  seconds passed{1000};
};

kube::Notice notice(
    const std::string& name,
    const std::string& reason = "SetAside",
    const std::string& note = "n") {
  return {
      .warning = true,
      .kind = kube::Notice::Kind::Service,
      .object = {"shop", name},
      .uid = "u",
      .reason = reason,
      .action = "Plan",
      .note = note};
}

TEST_CASE("the first is an Event, the second makes it a series, later ones count in silence") {
  World world;
  const auto first = world.take(notice("web"));
  REQUIRE(first);
  CHECK_FALSE(first->series);
  world.passed += seconds(1);
  const auto second = world.take(notice("web", "SetAside", "another note"));
  REQUIRE(second);
  CHECK(second->name == first->name);
  CHECK(second->time == first->time);
  CHECK(second->series == Series{2, world.now().wall});
  CHECK_FALSE(world.take(notice("web")));
  CHECK_FALSE(world.take(notice("web")));
  CHECK(world.upkeep().empty());
}

TEST_CASE("another object, reason, action, uid or type is another Event") {
  World world;
  REQUIRE(world.take(notice("web")));
  std::vector<kube::Notice> others(6, notice("web"));
  others[0].object.name = "db";
  others[1].object.name_space = "other";
  others[2].reason = "CannotRead";
  others[3].action = "Listen";
  others[4].uid = "u2";
  others[5].warning = false;
  for (const kube::Notice& other : others) {
    const auto event = world.take(other);
    REQUIRE(event);
    CHECK_FALSE(event->series);
  }
}

TEST_CASE("a series is told again after half an hour, and at its end") {
  World world;
  REQUIRE(world.take(notice("web")));
  REQUIRE(world.take(notice("web")));
  for (int minute = 0; minute < 29; ++minute) {
    world.passed += minutes(1);
    CHECK_FALSE(world.take(notice("web")));
    CHECK(world.upkeep().empty());
  }
  world.passed += minutes(1);
  auto due = world.upkeep();
  REQUIRE(due.size() == 1);
  CHECK(due[0].series->count == 31);
  CHECK(world.upkeep().empty());

  world.passed += minutes(1);
  CHECK_FALSE(world.take(notice("web")));
  const WallTime last = world.now().wall;
  world.passed += minutes(6);
  due = world.upkeep();
  REQUIRE(due.size() == 1);
  CHECK(due[0].series == Series{32, last});
  CHECK(world.aggregator.known() == 0);
  CHECK_FALSE(world.take(notice("web"))->series);
}

TEST_CASE("what is over and known to the server is forgotten without a word") {
  World world;
  REQUIRE(world.take(notice("once")));
  REQUIRE(world.take(notice("twice")));
  REQUIRE(world.take(notice("twice")));
  world.passed += minutes(6);
  CHECK(world.upkeep().empty());
  CHECK(world.aggregator.known() == 0);
}

TEST_CASE("an object that flaps may cause 25 Events and then one in five minutes") {
  World world;
  const auto flap = [&](int i) {
    return world.take(notice("web", "R" + std::to_string(i))).has_value();
  };
  int sent = 0;
  for (int i = 0; i < 100; ++i) {
    sent += flap(i) ? 1 : 0;
  }
  CHECK(sent == 25);
  CHECK(world.aggregator.bounded() == 75);
  CHECK(world.take(notice("other")));  // the bound is each object's own
  for (int i = 100; i < 700; ++i) {
    world.passed += seconds(1);
    sent += flap(i) ? 1 : 0;
  }
  CHECK(sent == 27);
}

TEST_CASE("a series that was not allowed to begin is told at its end") {
  World world;
  for (int i = 0; i < 25; ++i) {
    REQUIRE(world.take(notice("web", "R" + std::to_string(i))));
  }
  CHECK_FALSE(world.take(notice("web", "R0")));
  world.passed += minutes(6);
  const auto due = world.upkeep();
  REQUIRE(due.size() == 1);
  CHECK(due[0].notice.reason == "R0");
  CHECK(due[0].series->count == 2);
}

TEST_CASE("any number of objects takes bounded memory") {
  World world;
  for (std::size_t i = 0; i < 3 * Aggregator::kMaxEvents; ++i) {
    REQUIRE(world.take(notice("web-" + std::to_string(i))));
    CHECK(world.aggregator.known() <= Aggregator::kMaxEvents);
  }
}

}  // namespace
}  // namespace shunt::events
