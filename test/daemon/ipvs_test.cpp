// The whole daemon in mode ipvs: what a change costs, what a restart writes, what annotations ask
// for, and that source ranges never open.

#include <algorithm>
#include <limits>
#include <thread>

#include "daemon/ipvs_world.h"
#include "daemon/load.h"
#include "daemon/restricted_balancer.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

std::string crowd_ip(int i) {
  return "10.112." + std::to_string(i / 250) + "." + std::to_string(1 + i % 250);
}

// Services s-FIRST to s-LAST-1 of two endpoints each, with a NodePort for every tenth.
void add_services(const World& world, int first, int last) {
  std::vector<json> objects;
  for (int i = first; i < last; ++i) {
    const std::string name = "s-" + std::to_string(i);
    json object = service(name, {crowd_ip(i)});
    if (i % 10 == 0) {
      object["spec"]["type"] = "NodePort";
      object["spec"]["ports"][0]["nodePort"] = 30'000 + i / 10;
    }
    objects.push_back(object);
    objects.push_back(slice(name, "IPv4", {"10.64.0.1", "10.64.0.2"}));
  }
  world.apply(objects);
  world.settle(300s);
}

// The messages that it takes to make an endpoint of s-1 unready, and ready again: the least of a
// few times, should anything else happen meanwhile.
std::uint64_t messages_of_a_flip(const World& world) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  json object = slice("s-1", "IPv4", {"10.64.0.1", "10.64.0.2"});
  for (int i = 0; i < 3; ++i) {
    const auto before = world.settle(60s).at("messages").get<std::uint64_t>();
    for (const bool ready : {false, true}) {
      set_ready(object, 1, ready);
      world.apply({object});
      world.settle(60s);
    }
    least = std::min(least, world.settle(60s).at("messages").get<std::uint64_t>() - before);
  }
  return least;
}

TEST_CASE("a flip costs the same messages among 2 000 Services as among 10", "[ipvs]") {
  SHUNT_NEEDS_IPVS();
  World world(configured_by_file());
  start_in_mode(world, "ipvs");
  add_services(world, 0, 10);
  const std::uint64_t among_ten = messages_of_a_flip(world);
  add_services(world, 10, 2'000);
  const std::uint64_t among_many = messages_of_a_flip(world);
  CAPTURE(among_ten, among_many);
  std::printf(
      "a flip there and back: %llu messages among 10 Services, %llu among 2 000\n",
      static_cast<unsigned long long>(among_ten),
      static_cast<unsigned long long>(among_many));
  CHECK(among_ten > 0);
  CHECK(among_many == among_ten);
  CHECK(has_line(saved_servers(world), "-a -t 10.112.0.2:80 -r 10.64.0.2:8080 -m -w 1"));
}

// Everything that the daemon writes, as other programs show it; not what packets write into sets.
std::string kernel_state(const World& world) {
  return world.on_node(
      "ipvsadm -Sn; ip -o addr show dev kube-ipvs0; ip rule; ip route show table all;"
      "ip -6 route show table all; nft -s -t list ruleset; sysctl net.ipv4.vs\n"
      "for set in service-ips cluster-ips ipvs-ips ipvs-addresses nodeport-ips; do\n"
      "  nft -s list set ip kube-shunt $set\n"
      "done");
}

TEST_CASE(
    "kill -9 and restart in mode ipvs: nothing is written, no connect fails", "[ipvs][quick]") {
  SHUNT_NEEDS_IPVS();
  Shop shop(configured_by_file());
  start_in_mode(shop.world, "ipvs");
  const std::string before = kernel_state(shop.world);
  REQUIRE(before.find("-A -t 10.112.0.10:80") != std::string::npos);
  Load load(shop.world, 6000ms);
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(300ms);
    shop.world.kill_daemon();
    std::this_thread::sleep_for(100ms);
    shop.world.start_daemon();
    CHECK(shop.world.settle(60s).at("commits") == 0);
  }
  const lab::LoadReport report = load.report();
  INFO(to_text(report));
  CHECK(report.unanswered() == 0);
  CHECK(report.answered.size() == 3);
  CHECK(kernel_state(shop.world) == before);
}

TEST_CASE("what changed while no daemon ran is caught up with in mode ipvs", "[ipvs][quick]") {
  SHUNT_NEEDS_IPVS();
  Shop shop(configured_by_file());
  start_in_mode(shop.world, "ipvs");
  shop.world.kill_daemon();
  shop.world.apply({slice("web", "IPv4", {"10.64.0.2"})});
  shop.world.start_daemon();
  shop.world.settle(60s);
  Load load(shop.world, 1000ms);
  const lab::LoadReport report = load.report();
  INFO(to_text(report));
  CHECK(report.unanswered() == 0);
  CHECK(report.answered.size() == 1);
  CHECK(report.answered.contains("two"));
}

TEST_CASE(
    "annotations choose a Service's scheduler and the weights of its endpoints", "[ipvs][quick]") {
  SHUNT_NEEDS_IPVS();
  World world(configured_by_file());
  start_in_mode(world, "ipvs", {{"ipvs", {{"scheduler", "lc"}}}});
  json web = service("web", {"10.112.0.10"});
  json endpoints = slice("web", "IPv4", {"10.64.0.1", "10.64.0.2", "10.64.1.3"});
  endpoints["endpoints"][2]["nodeName"] = "edge-b";
  web["metadata"]["annotations"] = {
      {"kube-shunt.io/ipvs-scheduler", "wrr"},
      {"kube-shunt.io/ipvs-weights", "address:10.64.0.1=7, local=4, *=2"}};
  world.apply({web, endpoints, service("plain", {"10.112.0.11"})});
  world.settle(60s);
  std::string saved = saved_servers(world);
  {
    INFO(saved);
    CHECK(has_line(saved, "-A -t 10.112.0.10:80 -s wrr"));
    CHECK(has_line(saved, "-a -t 10.112.0.10:80 -r 10.64.0.1:8080 -m -w 7"));
    CHECK(has_line(saved, "-a -t 10.112.0.10:80 -r 10.64.0.2:8080 -m -w 4"));
    CHECK(has_line(saved, "-a -t 10.112.0.10:80 -r 10.64.1.3:8080 -m -w 2"));
    CHECK(has_line(saved, "-A -t 10.112.0.11:80 -s lc"));
  }

  web["metadata"]["annotations"] = {{"kube-shunt.io/ipvs-scheduler", "fastest"}};
  world.apply({web});
  world.settle(60s);
  saved = saved_servers(world);
  INFO(saved);
  CHECK(has_line(saved, "-A -t 10.112.0.10:80 -s lc"));
  for (const char* const real : {"10.64.0.1", "10.64.0.2", "10.64.1.3"}) {
    CHECK(has_line(saved, std::string("-a -t 10.112.0.10:80 -r ") + real + ":8080 -m -w 1"));
  }
}

TEST_CASE("source ranges never open in mode ipvs, whatever changes around them", "[ipvs]") {
  SHUNT_NEEDS_IPVS();
  World world(configured_by_file());
  const lab::Netns& pods = world.lab().place("pods");
  const lab::EchoServer one(pods, net::Protocol::Tcp, address("10.64.0.1:8080"), "one");
  const lab::EchoServer two(pods, net::Protocol::Tcp, address("10.64.0.2:8080"), "two");
  json balancer = balancer_for({"198.51.100.0/25"});
  const json both = slice("web", "IPv4", {"10.64.0.1", "10.64.0.2"});
  world.apply({balancer, both});
  start_in_mode(world, "ipvs");

  SteadyClient denied(world, kDenied, 500ms, 100, 600s);
  SteadyClient allowed(world, kAllowed, 5s, 100, 600s);
  for (int i = 1; i <= 40; ++i) {
    balancer["spec"]["loadBalancerSourceRanges"] = ranges_of(i);
    world.apply({balancer, i % 2 == 0 ? both : slice("web", "IPv4", {"10.64.0.1"})});
    world.settle(60s);
  }
  const lab::LoadReport& of_allowed = allowed.stop();
  // The Service, its endpoints and the daemon itself come and go: nobody gets in while they do.
  for (int i = 0; i < 5; ++i) {
    world.remove("Service", "web");
    world.settle(60s);
    world.apply({balancer});
    world.settle(60s);
    world.remove("EndpointSlice", "web-4");
    world.settle(60s);
    world.apply({both});
    world.settle(60s);
    world.kill_daemon();
    world.start_daemon();
    world.settle(60s);
  }
  const lab::LoadReport& of_denied = denied.stop();
  INFO("denied:\n" << to_text(of_denied) << "allowed:\n" << to_text(of_allowed));
  CHECK(of_denied.answered.empty());
  CHECK(of_denied.timed_out > 100);
  CHECK(of_allowed.unanswered() == 0);
  CHECK(of_allowed.answered.size() == 2);
}

}  // namespace
}  // namespace shunt::test
