// loadBalancerSourceRanges while they change: nobody who is denied gets through, nobody who is
// allowed is turned away.

#include <catch2/catch_test_macros.hpp>
#include <stop_token>
#include <thread>

#include "daemon/needs_root.h"
#include "daemon/world.h"
#include "netns/client.h"
#include "netns/echo_server.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr int kUpdates = 200;
constexpr double kConnectsPerSecond = 500;

net::SocketAddress address(const std::string& text) {
  return net::parse_socket_address(text).value();
}

json balancer_for(const std::vector<std::string>& ranges) {
  json out = service("web", {"10.112.0.10"});
  out["spec"]["type"] = "LoadBalancer";
  out["spec"]["ports"][0]["nodePort"] = 30080;
  out["spec"]["loadBalancerSourceRanges"] = ranges;
  out["status"]["loadBalancer"]["ingress"] = {{{"ip", "192.0.2.4"}}};
  return out;
}

// Asks at a steady rate until told to stop.
class Client {
 public:
  Client(const World& world, const std::string& from, std::chrono::milliseconds timeout)
      : thread_([&world, from, timeout, this](const std::stop_token& stop) {
          lab::LoadSpec load;
          load.question.from = address(from);
          load.question.to = address("192.0.2.4:80");
          load.question.timeout = timeout;
          load.per_second = kConnectsPerSecond;
          load.parallel = 2'000;
          load.time = 120s;
          report_ = lab::run_load(world.lab().outside(), load, stop);
        }) {}
  const lab::LoadReport& stop() {
    thread_.request_stop();
    thread_.join();
    return report_;
  }

 private:
  lab::LoadReport report_;
  std::jthread thread_;
};

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

  Client denied(world, "198.51.100.200:0", 300ms);
  Client allowed(world, "198.51.100.7:0", 3s);
  // Every set holds the allowed client and not the denied one, each in another way.
  const std::vector<std::vector<std::string>> sets{
      {"198.51.100.0/25"},
      {"198.51.100.0/26", "203.0.113.0/24"},
      {"198.51.100.7/32"},
      {"198.51.100.0/28", "198.51.100.128/26", "198.51.100.208/28"},
      {"10.0.0.0/8", "198.51.100.0/29", "198.51.100.64/26"}};
  std::uint64_t commits = world.settle()["commits"];
  for (int i = 1; i <= kUpdates; ++i) {
    balancer["spec"]["loadBalancerSourceRanges"] = sets[static_cast<std::size_t>(i) % sets.size()];
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
