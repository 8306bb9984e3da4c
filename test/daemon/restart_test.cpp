// Restart, kill -9, an API server that goes away, a table that somebody deletes: nothing that works
// stops working.

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <future>
#include <thread>

#include "daemon/needs_root.h"
#include "daemon/world.h"
#include "netns/client.h"
#include "netns/echo_server.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;
using lab::EchoServer;

net::SocketAddress address(const char* text) { return net::parse_socket_address(text).value(); }

class Load {
 public:
  Load(const World& world, std::chrono::milliseconds time) {
    lab::LoadSpec spec;
    spec.question.from = address("198.51.100.7:0");
    spec.question.to = address("10.112.0.10:80");
    spec.question.timeout = 3000ms;
    spec.per_second = 200;
    spec.parallel = 1000;
    spec.time = time;
    report_ = std::async(
        std::launch::async, [&world, spec] { return run_load(world.lab().outside(), spec); });
  }
  lab::LoadReport report() { return report_.get(); }

 private:
  std::future<lab::LoadReport> report_;
};

struct Shop {
  Shop() {
    world.apply(
        {service("web", {"10.112.0.10"}),
         slice("web", "IPv4", {"10.64.0.1", "10.64.0.2", "10.64.0.3"})});
    world.settle();
  }
  World world;
  EchoServer one{world.lab().place("pods"), net::Protocol::Tcp, address("10.64.0.1:8080"), "one"};
  EchoServer two{world.lab().place("pods"), net::Protocol::Tcp, address("10.64.0.2:8080"), "two"};
  EchoServer three{
      world.lab().place("pods"), net::Protocol::Tcp, address("10.64.0.3:8080"), "three"};
};

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

TEST_CASE("a table that somebody deleted is whole again with the next change") {
  SHUNT_NEEDS_ROOT();
  Shop shop;
  shop.world.on_node("nft add table ip foreign; nft delete table ip kube-shunt");
  shop.world.apply({slice("web", "IPv4", {"10.64.0.1", "10.64.0.2"})});
  shop.world.settle();
  Load load(shop.world, 500ms);
  CHECK(load.report().unanswered() == 0);
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
