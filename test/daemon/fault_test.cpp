// What an API server can do to its clients: after each of it a change still arrives, and nothing
// known is lost.

#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "daemon/needs_root.h"
#include "daemon/world.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

std::string endpoints_in_kernel(const World& world) {
  return world.on_node("nft list map ip kube-shunt endpoints");
}

TEST_CASE("a change arrives in spite of a fault in the open watches") {
  SHUNT_NEEDS_ROOT();
  const std::vector<std::pair<const char*, json>> faults{
      {"stall", {{"kind", "stall"}, {"live", true}, {"match", {{"remaining", 4}}}}},
      {"cut mid-object",
       {{"kind", "cut"}, {"live", true}, {"bytes", 60}, {"match", {{"remaining", 2}}}}},
      {"cut between objects",
       {{"kind", "cut"}, {"live", true}, {"bytes", 0}, {"match", {{"remaining", 2}}}}},
      {"reset",
       {{"kind", "cut"},
        {"live", true},
        {"bytes", 10},
        {"reset", true},
        {"match", {{"remaining", 2}}}}},
      {"malformed JSON", {{"kind", "malformed-json"}, {"match", {{"remaining", 2}}}}},
      {"410 event", {{"kind", "error-event"}, {"code", 410}, {"match", {{"remaining", 2}}}}},
      {"429 event", {{"kind", "error-event"}, {"code", 429}, {"match", {{"remaining", 2}}}}},
      {"500 event", {{"kind", "error-event"}, {"code", 500}, {"match", {{"remaining", 2}}}}},
      {"slow bytes", {{"kind", "slow"}, {"live", true}, {"bytes", 7}, {"delayMs", 1}}}};
  World::Options options;
  options.daemon_flags = {"--watch-stall-timeout", "1s"};
  const World world(options);
  world.apply({service("web", {"10.112.0.10"}), slice("web", "IPv4", {"10.64.0.1"})});
  world.settle();
  int round = 1;
  for (const auto& [name, fault] : faults) {
    INFO(name);
    world.set_faults(json::array({fault}));
    const std::string ip = "10.64.0." + std::to_string(++round);
    world.apply({slice("web", "IPv4", {ip})});
    world.settle(60s);
    world.clear_faults();
    const std::string now = endpoints_in_kernel(world);
    CHECK(now.find(ip + " . 8080") != std::string::npos);
    CHECK(now.find("10.64.0." + std::to_string(round - 1) + " . 8080") == std::string::npos);
  }
}

TEST_CASE(
    "a fault at the first requests delays the start, and nothing is written before the lists are "
    "complete") {
  SHUNT_NEEDS_ROOT();
  const std::vector<std::pair<const char*, json>> faults{
      {"401", {{"kind", "status"}, {"code", 401}}},
      {"403", {{"kind", "status"}, {"code", 403}}},
      {"429", {{"kind", "status"}, {"code", 429}, {"retryAfter", 1}}},
      {"500", {{"kind", "status"}, {"code", 500}}},
      {"503", {{"kind", "status"}, {"code", 503}, {"retryAfter", 1}}},
      {"HTML", {{"kind", "wrong-content"}}},
      {"cut", {{"kind", "cut"}, {"bytes", 100}}},
      {"refuse", {{"kind", "refuse"}}},
      {"silence", {{"kind", "stall"}}}};
  for (const auto& [name, fault] : faults) {
    DYNAMIC_SECTION(name) {
      World::Options options;
      options.start_daemon = false;
      options.daemon_flags = {"--watch-stall-timeout", "1s"};
      World world(options);
      world.apply({service("web", {"10.112.0.10"}), slice("web", "IPv4", {"10.64.0.1"})});
      json limited = fault;
      if (limited["kind"] != "refuse") {
        limited["match"] = {{"resource", "endpointslices"}};
      }
      world.set_faults(json::array({limited}));
      world.start_daemon();
      std::this_thread::sleep_for(700ms);
      CHECK(world.on_node("nft list ruleset").empty());
      world.clear_faults();
      world.settle(60s);
      CHECK(endpoints_in_kernel(world).find("10.64.0.1 . 8080") != std::string::npos);
    }
  }
}

TEST_CASE("an API server without streaming lists is listed in pages") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  options.server_flags = {"--no-streaming-lists"};
  options.start_daemon = false;
  World world(options);
  std::vector<json> objects;
  for (int i = 0; i < 1200; ++i) {
    objects.push_back(service(
        "s" + std::to_string(i),
        {"10.112." + std::to_string(i / 250) + "." + std::to_string(1 + i % 250)}));
  }
  world.apply(objects);
  // From its watch cache (resourceVersion 0) a server lists all at once; refused there, the client
  // asks for the newest state, which comes in pages.
  world.set_faults(json::array(
      {{{"kind", "status"},
        {"code", 410},
        {"match", {{"resource", "services"}, {"verb", "list"}, {"remaining", 1}}}}}));
  world.start_daemon();
  CHECK(world.settle().at("frontends") == 1200);
  const auto stats = json::parse(world.admin("GET", "/_test/stats"));
  long lists = 0;
  for (const json& entry : stats.at("requests")) {
    if (entry.at("verb") == "list" && entry.at("resource") == "services") {
      lists += entry.at("count").get<long>();
    }
  }
  CHECK(lists == 4);  // the refused one, and three pages of 500
  world.remove("Service", "s7");
  CHECK(world.settle().at("frontends") == 1199);
}

TEST_CASE("ServiceCIDRs that nobody may list stop nothing") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  options.start_daemon = false;
  World world(options);
  world.set_faults(json::array(
      {{{"kind", "status"}, {"code", 403}, {"match", {{"resource", "servicecidrs"}}}}}));
  world.apply({service("web", {"10.112.0.10"}), slice("web", "IPv4", {"10.64.0.1"})});
  world.start_daemon();
  for (int i = 0; i < 1000 && !(world.status() && world.status()->at("synced") == true); ++i) {
    std::this_thread::sleep_for(10ms);
  }
  CHECK(endpoints_in_kernel(world).find("10.64.0.1 . 8080") != std::string::npos);
}

}  // namespace
}  // namespace shunt::test
