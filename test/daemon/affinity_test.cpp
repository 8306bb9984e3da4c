// sessionAffinity ClientIP, through the daemon and real connections.

#include <catch2/catch_test_macros.hpp>
#include <set>
#include <thread>

#include "daemon/needs_root.h"
#include "daemon/world.h"
#include "netns/client.h"
#include "netns/echo_server.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using Steady = std::chrono::steady_clock;

// The name of the server that answered, or what happened instead.
std::string ask(const World& world, const std::string& from, const std::string& to) {
  lab::Question question;
  question.from = address(from);
  question.to = address(to);
  const lab::Answer answer = lab::ask(world.lab().outside(), question);
  return answer.kind == lab::Answer::Kind::Answered ? answer.by : "nobody";
}

json sticky(json object, int timeout_seconds) {
  object["spec"]["sessionAffinity"] = "ClientIP";
  object["spec"]["sessionAffinityConfig"] = {{"clientIP", {{"timeoutSeconds", timeout_seconds}}}};
  return object;
}

// Servers on 10.64.0.1 ... and fd64::1 ..., named by their number.
struct Servers {
  Servers(const World& world, int count) {
    for (int i = 1; i <= count; ++i) {
      const std::string n = std::to_string(i);
      for (const std::string& ip : {"10.64.0." + n + ":8080", "[fd64::" + n + "]:8080"}) {
        all.push_back(std::make_unique<lab::EchoServer>(
            world.lab().place("pods"), net::Protocol::Tcp, address(ip), n));
      }
    }
  }
  std::vector<std::unique_ptr<lab::EchoServer>> all;
};

std::string client(int n) { return "198.51.100." + std::to_string(n) + ":0"; }

TEST_CASE("every client stays with its endpoint, over a restart too, and clients spread") {
  SHUNT_NEEDS_ROOT();
  World world;
  const Servers servers(world, 4);
  world.apply(
      {sticky(service("web", {"10.112.0.10", "fdc0::10"}), 10800),
       slice("web", "IPv4", {"10.64.0.1", "10.64.0.2", "10.64.0.3", "10.64.0.4"}),
       slice("web", "IPv6", {"fd64::1", "fd64::2", "fd64::3", "fd64::4"})});
  world.settle();
  std::map<std::string, std::string> first;
  const auto ask_all = [&](bool learn) {
    for (int n = 1; n <= 40; ++n) {
      for (const auto& [from, to] :
           {std::pair{client(n), std::string("10.112.0.10:80")},
            std::pair{"[2001:db8:e::" + std::to_string(n) + "]:0", std::string("[fdc0::10]:80")}}) {
        const std::string by = ask(world, from, to);
        INFO(from);
        CHECK(by != "nobody");
        if (learn) {
          first[from] = by;
        } else {
          CHECK(by == first[from]);
        }
      }
    }
  };
  ask_all(true);
  std::set<std::string> used;
  for (const auto& [from, by] : first) {
    used.insert(by);
  }
  CHECK(used.size() == 4);
  ask_all(false);
  world.kill_daemon();
  ask_all(false);
  world.start_daemon();
  const json status = world.settle();
  CHECK(status["commits"] == 0);
  ask_all(false);
}

TEST_CASE("no further client comes to an endpoint that turned unready, and the others stay") {
  SHUNT_NEEDS_ROOT();
  World world;
  const Servers servers(world, 3);
  json endpoints = slice("web", "IPv4", {"10.64.0.1", "10.64.0.2", "10.64.0.3"});
  world.apply({sticky(service("web", {"10.112.0.10"}), 10800), endpoints});
  world.settle();
  std::map<int, std::string> first;
  for (int n = 1; n <= 60; ++n) {
    first[n] = ask(world, client(n), "10.112.0.10:80");
  }
  SECTION("while the daemon runs") {
    set_ready(endpoints, 0, false);
    world.apply({endpoints});
  }
  SECTION("while the daemon is away") {
    world.kill_daemon();
    set_ready(endpoints, 0, false);
    world.apply({endpoints});
    world.start_daemon();
  }
  world.settle();
  for (int n = 1; n <= 60; ++n) {
    const std::string by = ask(world, client(n), "10.112.0.10:80");
    INFO(n << " was at " << first[n]);
    CHECK(by != "1");
    CHECK(by != "nobody");
    if (first[n] != "1") {
      CHECK(by == first[n]);
    }
  }
}

TEST_CASE("what is remembered ends within a tenth of the timeout, and use prolongs it") {
  SHUNT_NEEDS_ROOT();
  World world;
  const Servers servers(world, 1);
  constexpr auto kTimeout = 5s;
  world.apply({sticky(service("web", {"10.112.0.10"}), 5), slice("web", "IPv4", {"10.64.0.1"})});
  world.settle();
  // The kernel's own word: an element is listed until its time is up.
  const auto remembered = [&] {
    return world.on_node("nft list map ip kube-shunt affinity-10.112.0.10-tcp-80")
               .find("198.51.100.1 ") != std::string::npos;
  };
  CHECK(ask(world, client(1), "10.112.0.10:80") == "1");
  std::this_thread::sleep_for(2s);
  CHECK(ask(world, client(1), "10.112.0.10:80") == "1");
  const auto last_use = Steady::now();
  while (remembered() && Steady::now() - last_use < 2 * kTimeout) {
    std::this_thread::sleep_for(20ms);
  }
  const auto lasted = Steady::now() - last_use;
  CHECK(lasted >= kTimeout * 9 / 10);
  CHECK(lasted <= kTimeout * 11 / 10 + 200ms);  // reading the list takes a moment
}

TEST_CASE("a Service that loses and regains affinity or its endpoints leaves nothing behind") {
  SHUNT_NEEDS_ROOT();
  World world;
  const Servers servers(world, 2);
  json balancer = sticky(service("web", {"10.112.0.10"}), 600);
  balancer["spec"]["type"] = "LoadBalancer";
  balancer["spec"]["externalTrafficPolicy"] = "Local";
  balancer["spec"]["ports"][0]["nodePort"] = 30080;
  balancer["status"]["loadBalancer"]["ingress"] = {{{"ip", "192.0.2.4"}}};
  const json endpoints = slice("web", "IPv4", {"10.64.0.1", "10.64.0.2"});
  const json plain = service("web", {"10.112.0.10"});
  world.apply({balancer, endpoints});
  world.settle();
  const std::string by = ask(world, client(1), "192.0.2.4:80");
  CHECK(ask(world, client(1), "10.80.0.10:30080") == by);

  const auto chains = [&] {
    return world.on_node("nft list chains ip | grep -cE 'chain (sticky|remember)-' || true");
  };
  CHECK(chains() == "3\n");  // what policy Cluster and policy Local remember, and what writes both
  world.apply({plain});
  world.settle();
  CHECK(ask(world, client(1), "10.112.0.10:80") != "nobody");
  for (int i = 0; i < 100 && chains() != "0\n"; ++i) {
    std::this_thread::sleep_for(100ms);
  }
  CHECK(chains() == "0\n");
  CHECK(world.on_node("nft list maps ip | grep -c 'map affinity-[0-9l]' || true") == "0\n");
  world.apply({balancer});
  world.settle();
  const std::string again = ask(world, client(1), "192.0.2.4:80");
  CHECK(ask(world, client(1), "10.80.0.10:30080") == again);
}

}  // namespace
}  // namespace shunt::test
