// loadBalancerSourceRanges while they change: nobody who is denied gets through, nobody who is
// allowed is turned away.

#include <catch2/catch_test_macros.hpp>

#include "daemon/needs_root.h"
#include "daemon/restricted_balancer.h"
#include "daemon/world.h"
#include "netns/client.h"
#include "netns/echo_server.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr int kUpdates = 200;
constexpr double kConnectsPerSecond = 500;

std::size_t answered(const lab::LoadReport& report) {
  std::size_t count = 0;
  for (const auto& [by, n] : report.answered) {
    count += n;
  }
  return count;
}

TEST_CASE("200 updates of source ranges under load let nobody in and turn nobody away") {
  SHUNT_NEEDS_ROOT();
  const World world;
  const lab::EchoServer server(
      world.lab().place("pods"), net::Protocol::Tcp, address("10.64.0.1:8080"), "web");
  json balancer = balancer_for({"198.51.100.0/25"});
  world.apply({balancer, slice("web", "IPv4", {"10.64.0.1"})});
  world.settle();

  SteadyClient denied(world, kDenied, 300ms, kConnectsPerSecond, 120s);
  SteadyClient allowed(world, kAllowed, 3s, kConnectsPerSecond, 120s);
  std::uint64_t commits = world.settle()["commits"];
  for (int i = 1; i <= kUpdates; ++i) {
    balancer["spec"]["loadBalancerSourceRanges"] = ranges_of(i);
    world.apply({balancer});
    world.settle();
  }
  CHECK(world.settle()["commits"].get<std::uint64_t>() >= commits + kUpdates);
  const lab::LoadReport& of_denied = denied.stop();
  const lab::LoadReport& of_allowed = allowed.stop();
  INFO("denied:\n" << to_text(of_denied) << "allowed:\n" << to_text(of_allowed));
  CHECK(answered(of_denied) == 0);
  CHECK(of_denied.timed_out > 100);
  CHECK(of_denied.refused == 0);  // silence
  CHECK(of_allowed.unanswered() == 0);
  CHECK(answered(of_allowed) > 100);
}

TEST_CASE("source ranges restrict the balancer's address and nothing else") {
  SHUNT_NEEDS_ROOT();
  const World world;
  const lab::EchoServer server(
      world.lab().place("pods"), net::Protocol::Tcp, address("10.64.0.1:8080"), "web");
  json balancer = balancer_for({" 198.51.100.0/25 ", "not a range"});
  balancer["spec"]["externalIPs"] = {"203.0.113.9"};
  world.apply({balancer, slice("web", "IPv4", {"10.64.0.1"})});
  world.settle();
  const auto by = [&](const std::string& from, const std::string& to) {
    lab::Question question;
    question.from = address(from);
    question.to = address(to);
    question.timeout = 300ms;
    return lab::ask(world.lab().outside(), question).by;
  };
  CHECK(by("198.51.100.7:0", "192.0.2.4:80") == "web");
  CHECK(by("198.51.100.200:0", "192.0.2.4:80").empty());
  CHECK(by("198.51.100.200:0", "10.112.0.10:80") == "web");
  CHECK(by("198.51.100.200:0", "203.0.113.9:80") == "web");
  CHECK(by("198.51.100.200:0", "10.80.0.10:30080") == "web");
}

}  // namespace
}  // namespace shunt::test
