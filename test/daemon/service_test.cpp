// ClusterIPs from pods, the node and outside, both families; what changes cost through the whole
// daemon.

#include <catch2/catch_test_macros.hpp>
#include <set>

#include "daemon/needs_root.h"
#include "daemon/world.h"
#include "netns/client.h"
#include "netns/echo_server.h"

namespace shunt::test {
namespace {

using lab::Answer;
using lab::EchoServer;

Answer ask(
    const lab::Netns& where,
    const std::string& from,
    const std::string& to,
    net::Protocol protocol = net::Protocol::Tcp) {
  lab::Question question;
  question.protocol = protocol;
  question.from = address(from);
  question.to = address(to);
  return lab::ask(where, question);
}

TEST_CASE("a ClusterIP answers in both families and protocols, from outside and from the node") {
  SHUNT_NEEDS_ROOT();
  const World world;
  for (const net::Protocol protocol : {net::Protocol::Tcp, net::Protocol::Udp}) {
    const std::string name(protocol == net::Protocol::Tcp ? "tcp" : "udp");
    const EchoServer v4(world.lab().place("pods"), protocol, address("10.64.0.1:8080"), "pod4");
    const EchoServer v6(world.lab().place("pods"), protocol, address("[fd64::1]:8080"), "pod6");
    auto s = service(name, {"10.112.0.10", "fdc0::10"}, protocol == net::Protocol::Tcp ? 80 : 81);
    auto four = slice(name, "IPv4", {"10.64.0.1"});
    auto six = slice(name, "IPv6", {"fd64::1"});
    for (nlohmann::json* ports : {&s["spec"]["ports"], &four["ports"], &six["ports"]}) {
      (*ports)[0]["protocol"] = net::to_string(protocol);
    }
    world.apply({s, four, six});
    world.settle();
    const std::string port = protocol == net::Protocol::Tcp ? "80" : "81";
    CHECK(
        ask(world.lab().outside(), "198.51.100.7:0", "10.112.0.10:" + port, protocol).by == "pod4");
    CHECK(
        ask(world.lab().outside(), "[2001:db8:e::7]:0", "[fdc0::10]:" + port, protocol).by ==
        "pod6");
    CHECK(ask(world.lab().node(), "10.80.0.10:0", "10.112.0.10:" + port, protocol).by == "pod4");
    CHECK(ask(world.lab().node(), "[fd80::10]:0", "[fdc0::10]:" + port, protocol).by == "pod6");
  }
}

TEST_CASE(
    "an endpoint that turns unready leaves, the last one leaves a refusal, and a free ClusterIP is "
    "silence") {
  SHUNT_NEEDS_ROOT();
  const World world;
  const EchoServer one(
      world.lab().place("pods"), net::Protocol::Tcp, address("10.64.0.1:8080"), "one");
  const EchoServer two(
      world.lab().place("pods"), net::Protocol::Tcp, address("10.64.0.2:8080"), "two");
  const auto from_outside = [&](const std::string& to) {
    return ask(world.lab().outside(), "198.51.100.7:0", to);
  };
  auto endpoints = slice("web", "IPv4", {"10.64.0.1", "10.64.0.2"});
  world.apply({service("web", {"10.112.0.10"}), endpoints});
  world.settle();
  std::set<std::string> seen;
  for (int i = 0; i < 64; ++i) {
    seen.insert(from_outside("10.112.0.10:80").by);
  }
  CHECK(seen == std::set<std::string>{"one", "two"});

  set_ready(endpoints, 0, false);
  world.apply({endpoints});
  world.settle();
  for (int i = 0; i < 32; ++i) {
    CHECK(from_outside("10.112.0.10:80").by == "two");
  }
  set_ready(endpoints, 1, false);
  world.apply({endpoints});
  world.settle();
  CHECK(from_outside("10.112.0.10:80").kind == Answer::Kind::Refused);
  CHECK(from_outside("10.112.0.10:81").kind == Answer::Kind::Refused);
  CHECK(from_outside("10.112.0.99:80").kind == Answer::Kind::TimedOut);
}

TEST_CASE("a pod that reaches itself through a Service is answered") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  options.lab = lab::default_lab_spec();
  options.lab.pods = {
      {"web", {net::parse_ip("10.64.0.1").value(), net::parse_ip("fd64::1").value()}}};
  options.daemon_flags = {"--cluster-cidr", "10.64.0.0/14,fd64::/48"};
  const World world(options);
  const EchoServer v4(
      world.lab().place("web"), net::Protocol::Tcp, address("10.64.0.1:8080"), "web");
  const EchoServer v6(
      world.lab().place("web"), net::Protocol::Tcp, address("[fd64::1]:8080"), "web");
  auto four = slice("web", "IPv4", {"10.64.0.1"});
  auto six = slice("web", "IPv6", {"fd64::1"});
  // Whatever the slice says of where the pod is: slices written by hand may say nothing.
  for (const char* node : {"edge-a", "edge-b", ""}) {
    for (nlohmann::json* object : {&four, &six}) {
      (*object)["endpoints"][0]["nodeName"] = node;
    }
    world.apply({service("web", {"10.112.0.10", "fdc0::10"}), four, six});
    world.settle();
    INFO("nodeName \"" << node << "\"");
    const Answer v4_answer = ask(world.lab().place("web"), "10.64.0.1:0", "10.112.0.10:80");
    CHECK(v4_answer.by == "web");
    CHECK(v4_answer.seen_as.find("10.64.0.1:") == std::string::npos);
    CHECK(ask(world.lab().place("web"), "[fd64::1]:0", "[fdc0::10]:80").by == "web");
  }
}

TEST_CASE("one odd object harms only itself") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  // Protobuf has no words for a list of ports that is a text.
  options.daemon_flags = {"--kube-api-content-type", "application/json"};
  const World world(options);
  const EchoServer pod(
      world.lab().place("pods"), net::Protocol::Tcp, address("10.64.0.1:8080"), "pod");
  auto wrong_type = service("wrong-type", {"10.112.0.20"});
  wrong_type["spec"]["ports"] = "all of them";
  auto wrong_port = service("wrong-port", {"10.112.0.21"});
  wrong_port["spec"]["ports"][0]["port"] = 70000;
  wrong_port["spec"]["ports"].push_back({{"name", "q"}, {"port", 90}, {"protocol", "QUIC"}});
  auto wrong_address = slice("web", "IPv4", {"not-an-address", "10.64.0.1"});
  world.apply({wrong_type, wrong_port, service("web", {"10.112.0.10"}), wrong_address}, true);
  world.settle();
  for (int i = 0; i < 16; ++i) {
    CHECK(ask(world.lab().outside(), "198.51.100.7:0", "10.112.0.10:80").by == "pod");
  }
  for (const char* named : {"ns/wrong-type", "ns/wrong-port", "ns/web"}) {
    CHECK(world.daemon_log().find(named) != std::string::npos);
  }
  // Mended, it works like any other.
  world.apply({service("wrong-type", {"10.112.0.20"}), slice("wrong-type", "IPv4", {"10.64.0.1"})});
  world.settle();
  CHECK(ask(world.lab().outside(), "198.51.100.7:0", "10.112.0.20:80").by == "pod");
}

TEST_CASE("two Services on one address: the older has it, and the other takes over") {
  SHUNT_NEEDS_ROOT();
  const World world;
  const EchoServer one(
      world.lab().place("pods"), net::Protocol::Tcp, address("10.64.0.1:8080"), "old");
  const EchoServer two(
      world.lab().place("pods"), net::Protocol::Tcp, address("10.64.0.2:8080"), "new");
  auto older = service("older", {"10.112.0.10"});
  older["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z";
  world.apply({service("newer", {"10.112.0.10"}), slice("newer", "IPv4", {"10.64.0.2"})});
  world.apply({older, slice("older", "IPv4", {"10.64.0.1"})});
  CHECK(world.settle().at("conflicts") == 1);
  CHECK(ask(world.lab().outside(), "198.51.100.7:0", "10.112.0.10:80").by == "old");
  world.remove("Service", "older");
  CHECK(world.settle().at("conflicts") == 0);
  CHECK(ask(world.lab().outside(), "198.51.100.7:0", "10.112.0.10:80").by == "new");
}

TEST_CASE("messages and bytes of a change do not depend on the number of Services") {
  SHUNT_NEEDS_ROOT();
  std::vector<std::vector<std::pair<long, long>>> costs;
  for (const int services : {10, 5000}) {
    const World world;
    std::vector<nlohmann::json> objects;
    for (int i = 0; i < services; ++i) {
      const std::string name = "s" + std::to_string(10000 + i);
      const std::string ip =
          "10.112." + std::to_string(1 + i / 250) + "." + std::to_string(1 + i % 250);
      objects.push_back(service(name, {ip}));
      objects.push_back(slice(name, "IPv4", {"10.64.0.1", "10.64.0.2", "10.64.0.3", "10.64.0.4"}));
    }
    world.apply(objects);
    nlohmann::json last = world.settle(std::chrono::seconds(120));
    const std::string rules =
        "nft -a list table ip kube-shunt | grep -vE 'elements|^\\s+[0-9a-f:.]+ . ' | sed 's/ }$//' "
        "| md5sum";
    const std::string before = world.on_node(rules);
    std::vector<std::pair<long, long>> seen;
    const auto measure = [&] {
      const nlohmann::json now = world.settle();
      seen.emplace_back(
          now.at("messages").get<long>() - last.at("messages").get<long>(),
          now.at("bytes").get<long>() - last.at("bytes").get<long>());
      CHECK(now.at("commits").get<long>() == last.at("commits").get<long>() + 1);
      last = now;
    };
    const std::string name = "s10004";
    world.apply({slice(name, "IPv4", {"10.64.0.1", "10.64.0.2", "10.64.0.3", "10.64.0.9"})});
    measure();  // a flip
    world.apply({slice(name, "IPv4", {"10.64.0.1", "10.64.0.2", "10.64.0.3"})});
    measure();  // one less
    world.apply({slice(name, "IPv4", {"10.64.0.1", "10.64.0.2", "10.64.0.3", "10.64.0.4"})});
    measure();  // one more
    world.apply(
        {slice(name, "IPv4", {"10.64.0.1", "10.64.0.2", "10.64.0.3", "10.64.0.4", "10.64.0.5"})});
    measure();  // and another class
    world.apply({slice("s99999", "IPv4", {"10.64.0.1", "10.64.0.2"})});
    world.settle();
    world.apply({service("s99999", {"10.112.250.1"})});
    measure();  // a new Service
    world.remove("Service", "s99999");
    measure();
    CHECK(world.on_node(rules) == before);
    costs.push_back(seen);
  }
  CHECK(costs[0] == costs[1]);
}

TEST_CASE("what annotations ask of IPVS changes nothing in nftables mode, and mistakes are told") {
  SHUNT_NEEDS_ROOT();
  const World world;
  nlohmann::json web = service("web", {"10.112.0.10"});
  world.apply({web, slice("web", "IPv4", {"10.64.0.1", "10.64.0.2"})});
  const nlohmann::json before = world.settle();
  web["metadata"]["annotations"] = {
      {"kube-shunt.io/ipvs-scheduler", "fastest"},
      {"kube-shunt.io/ipvs-weights", "address:10.64.0.1=0, nobody=3, *=2"}};
  world.apply({web});
  world.await_log("ipvs-scheduler: \\\"fastest\\\" is no scheduler of IPVS");
  world.await_log("ipvs-weights: \\\"nobody=3\\\" selects nothing");
  const nlohmann::json after = world.settle();
  CHECK(after.at("messages") == before.at("messages"));
  CHECK(after.at("commits") == before.at("commits"));
}

}  // namespace
}  // namespace shunt::test
