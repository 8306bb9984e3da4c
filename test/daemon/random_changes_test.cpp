// Random changes of Services and slices, singly, in bursts, and with the daemon killed at random
// moments, end in exactly the kernel state that a fresh start computes.

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <thread>

#include "daemon/needs_root.h"
#include "daemon/world.h"
#include "kernel/table_contents.h"

namespace shunt::test {
namespace {

using nlohmann::json;

class RandomObjects {
 public:
  explicit RandomObjects(unsigned seed) : random_(seed) {}
  unsigned below(unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random_); }

  json any_service() {
    const unsigned n = below(25);
    const std::string v4 = "10.112.0." + std::to_string(1 + n);
    const std::string v6 = "fdc0::" + std::to_string(1 + n);
    std::vector<std::string> ips{v4, v6};
    if (below(3) == 0) {
      ips = {below(2) == 0 ? v4 : v6};
    }
    json out = service(name(n), ips, below(4) == 0 ? 81 : 80);
    if (below(4) == 0) {
      out["spec"]["ports"].push_back(
          {{"name", "q"}, {"port", 90 + below(2)}, {"protocol", below(2) == 0 ? "UDP" : "TCP"}});
    }
    if (below(5) == 0) {
      out["spec"]["internalTrafficPolicy"] = "Local";
    }
    if (below(4) == 0) {
      out["spec"]["sessionAffinity"] = "ClientIP";
      out["spec"]["sessionAffinityConfig"] = {
          {"clientIP", {{"timeoutSeconds", below(2) == 0 ? 10800 : 60}}}};
    }
    if (below(2) == 0) {
      make_external(out, n);
    }
    return out;
  }
  // Some addresses are wanted by several Services.
  void make_external(json& service, unsigned n) {
    json& spec = service["spec"];
    spec["type"] = below(3) == 0 ? "NodePort" : "LoadBalancer";
    spec["ports"][0]["nodePort"] = 30000 + n;
    spec["externalTrafficPolicy"] = below(2) == 0 ? "Local" : "Cluster";
    if (below(2) == 0) {
      spec["externalIPs"] = {"203.0.113." + std::to_string(1 + below(6)), "2001:db8:30::1"};
    }
    if (below(2) == 0) {
      service["status"]["loadBalancer"]["ingress"] = {
          {{"ip", "192.0.2." + std::to_string(1 + below(20))}},
          {{"ip", "2001:db8:20::" + std::to_string(1 + below(20))}}};
    }
    if (below(2) == 0) {
      spec["loadBalancerSourceRanges"] = {
          "198.51.100.0/" + std::to_string(24 + below(5)),
          "2001:db8:e::/" + std::to_string(64 + below(5)),
          "198.51.100.128/" + std::to_string(25 + below(5))};
    }
  }
  json any_slice() {
    const unsigned n = below(25);
    const bool v4 = below(2) == 0;
    std::vector<std::string> addresses;
    for (unsigned i = below(12); i > 0; --i) {
      addresses.push_back((v4 ? "10.64.0." : "fd64::") + std::to_string(1 + below(60)));
    }
    json out = slice(name(n), v4 ? "IPv4" : "IPv6", addresses);
    for (json& endpoint : out["endpoints"]) {
      const unsigned kind = below(8);
      endpoint["conditions"] = {
          {"ready", kind > 1}, {"serving", kind > 0}, {"terminating", kind == 1}};
      endpoint["nodeName"] = below(2) == 0 ? "edge-a" : "edge-b";
      if (below(2) == 0) {
        endpoint["hints"] = {{"forZones", {{{"name", below(2) == 0 ? "z1" : "z2"}}}}};
      }
    }
    if (below(4) == 0) {  // a second slice of the Service, of its other port
      out["metadata"]["name"] = name(n) + "-second";
      out["metadata"]["name"] = out["metadata"]["name"].get<std::string>() + (v4 ? "-4" : "-6");
      out["ports"][0] = {
          {"name", "q"}, {"port", 9090}, {"protocol", below(2) == 0 ? "UDP" : "TCP"}};
    }
    return out;
  }
  // One change: objects to apply, or nothing when it was a deletion, which is then done.
  std::vector<json> change(const World& world) {
    switch (below(8)) {
      case 0:
        forget(world, "Service", name(below(25)));
        return {};
      case 1:
        forget(world, "EndpointSlice", name(below(25)) + (below(2) == 0 ? "-4" : "-6"));
        return {};
      case 2:
        return {
            {{"apiVersion", "v1"},
             {"kind", "Node"},
             {"metadata",
              {{"name", "edge-a"},
               {"labels", {{"topology.kubernetes.io/zone", below(2) == 0 ? "z1" : "z2"}}}}},
             {"status",
              {{"addresses",
                {{{"type", "InternalIP"},
                  {"address", below(4) == 0 ? "10.80.1.10" : "10.80.0.10"}}}}}}}};
      case 3:
      case 4:
        return {any_service()};
      default:
        return {any_slice()};
    }
  }

 private:
  static std::string name(unsigned n) { return "s" + std::to_string(n); }
  static void forget(const World& world, const std::string& kind, const std::string& object) {
    try {
      world.remove(kind, object);
    } catch (const std::runtime_error&) {
      // It was not there.
    }
  }
  std::mt19937 random_;
};

TableContents contents(const World& world, net::Family family) {
  return world.lab().node().run([&] { return table_contents(family); });
}

void check_against_fresh_start(World& world) {
  const TableContents v4 = contents(world, net::Family::IPv4);
  const TableContents v6 = contents(world, net::Family::IPv6);
  world.stop_daemon();
  world.on_node("nft flush ruleset");
  world.start_daemon();
  world.settle();
  CHECK(contents(world, net::Family::IPv4) == v4);
  CHECK(contents(world, net::Family::IPv6) == v6);
  CHECK(v4.size() > 100);
}

TEST_CASE("1 000 random changes, one by one and in bursts") {
  SHUNT_NEEDS_ROOT();
  World world;
  RandomObjects objects(2026);
  int changes = 0;
  while (changes < 1000) {
    const unsigned burst = objects.below(3) == 0 ? 1 + objects.below(30) : 1;
    std::vector<json> batch;
    for (unsigned i = 0; i < burst; ++i, ++changes) {
      for (json& object : objects.change(world)) {
        batch.push_back(std::move(object));
      }
    }
    if (!batch.empty()) {
      world.apply(batch);
    }
    if (objects.below(10) == 0) {
      world.settle();
    }
  }
  world.settle();
  CHECK(world.status()->at("setAside") == 0);
  check_against_fresh_start(world);
}

TEST_CASE("the same with kill -9 at random moments") {
  SHUNT_NEEDS_ROOT();
  World world;
  RandomObjects objects(77);
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < 40; ++i) {
      const std::vector<json> batch = objects.change(world);
      if (!batch.empty()) {
        world.apply(batch);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(objects.below(60)));
    world.kill_daemon();
    for (const json& object : objects.change(world)) {
      world.apply({object});
    }
    world.start_daemon();
    std::this_thread::sleep_for(std::chrono::milliseconds(objects.below(150)));
  }
  world.settle();
  check_against_fresh_start(world);
}

}  // namespace
}  // namespace shunt::test
