// Restart, kill -9, an API server that goes away, a table that somebody deletes: nothing that works
// stops working.

#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "daemon/load.h"
#include "daemon/needs_root.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("kill -9 and restart under load: no connect fails, and the restart writes nothing") {
  SHUNT_NEEDS_ROOT();
  Shop shop;
  Load load(shop.world, 3000ms);
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(300ms);
    shop.world.kill_daemon();
    std::this_thread::sleep_for(100ms);
    shop.world.start_daemon();
    CHECK(shop.world.settle().at("commits") == 0);
  }
  const lab::LoadReport report = load.report();
  INFO(to_text(report));
  CHECK(report.unanswered() == 0);
  CHECK(report.total() >= 400);
}

TEST_CASE("SIGTERM ends the daemon cleanly and leaves the Services working") {
  SHUNT_NEEDS_ROOT();
  Shop shop;
  CHECK(shop.world.stop_daemon() == 0);
  Load load(shop.world, 500ms);
  CHECK(load.report().unanswered() == 0);
}

TEST_CASE("what changed while no daemon ran is caught up with") {
  SHUNT_NEEDS_ROOT();
  Shop shop;
  shop.world.kill_daemon();
  shop.world.apply({slice("web", "IPv4", {"10.64.0.2"})});
  shop.world.start_daemon();
  CHECK(shop.world.settle().at("commits").get<int>() >= 1);
  Load load(shop.world, 500ms);
  const lab::LoadReport report = load.report();
  CHECK(report.unanswered() == 0);
  CHECK(report.answered.size() == 1);
  CHECK(report.answered.contains("two"));
}

TEST_CASE("the API server goes away and comes back with an emptied watch cache") {
  SHUNT_NEEDS_ROOT();
  Shop shop;
  Load load(shop.world, 2500ms);
  shop.world.kill_server();
  std::this_thread::sleep_for(1500ms);
  shop.world.start_server(true);
  shop.world.apply({slice("web", "IPv4", {"10.64.0.3"})});
  shop.world.settle(60s);
  CHECK(load.report().unanswered() == 0);
  Load after(shop.world, 500ms);
  const lab::LoadReport report = after.report();
  CHECK(report.unanswered() == 0);
  CHECK(report.answered.size() == 1);
}

TEST_CASE("what somebody did to the table is undone without any change of ours") {
  SHUNT_NEEDS_ROOT();
  Shop shop;
  shop.world.on_node("nft add table ip foreign");
  for (const char* blow :
       {"nft delete table ip kube-shunt",
        "nft flush chain ip kube-shunt services",
        "nft flush set ip kube-shunt class-4",
        "nft flush map ip kube-shunt endpoints"}) {
    INFO(blow);
    shop.world.on_node(blow);
    std::this_thread::sleep_for(100ms);  // for the notification, not for the repair
    shop.world.settle();
    Load load(shop.world, 300ms);
    CHECK(load.report().unanswered() == 0);
  }
  CHECK(shop.world.on_node("nft list tables").find("foreign") != std::string::npos);
}

TEST_CASE(
    "a daemon that cannot reach any API server leaves the kernel alone, and ends when told to") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  options.start_daemon = false;
  World world(options);
  world.kill_server();
  world.start_daemon();
  std::this_thread::sleep_for(500ms);
  CHECK(world.on_node("nft list ruleset").empty());
  CHECK(world.stop_daemon() == 0);
}

}  // namespace
}  // namespace shunt::test
