// From nftables to iptables, from one of its variants to the other, and back, on a node that works.

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "daemon/iptables_world.h"
#include "daemon/live_node.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;

std::string own_tables(const World& world) {
  return world.on_node("nft list tables | grep kube-shunt || true");
}

std::string own_chains(const World& world, const std::string& variant) {
  return world.on_node(
      "for t in '' 6; do ip${t}tables-" + variant + "-save 2>/dev/null | grep KUBE- || true; done");
}

class Switching {
 public:
  explicit Switching(World& world) : world_(world), share_(bearable_share(world)), held_(world) {
    held_.open_more();
    held_.check_alive();
  }
  void to(const char* mode, const nlohmann::json& more, const char* when) {
    {
      LoadFromAll load(world_, share_);
      std::this_thread::sleep_for(1s);
      switch_to(world_, mode, ++switches_, more);
      held_.check_alive();
      held_.open_more();
      std::this_thread::sleep_for(1s);
      load.stop_and_check(when);
    }
    held_.check_alive();
  }

 private:
  World& world_;
  double share_;
  HeldConnections held_;
  std::size_t switches_ = 0;
};

bool soon(const std::function<bool()>& condition) {
  for (int i = 0; i < 100; ++i) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(100ms);
  }
  return false;
}

TEST_CASE("from nftables to iptables, the other iptables and back: no connection breaks") {
  SHUNT_NEEDS_IPTABLES("legacy");
  LiveNode node;
  World& world = node.world;
  start_in_mode(world, "nftables");
  const pid_t pid = world.daemon_pid();
  Switching switching(world);

  switching.to("iptables", with_variant("nft"), "to iptables-nft");
  CHECK(soon([&] { return own_tables(world).empty(); }));
  CHECK(saved_rules(world, "nft").find("10.64.0.2:8080") != std::string::npos);
  CHECK(own_chains(world, "legacy").empty());

  switching.to("iptables", with_variant("legacy"), "to iptables-legacy");
  CHECK(soon([&] { return own_chains(world, "nft").empty(); }));
  CHECK(saved_rules(world, "legacy").find("10.64.0.2:8080") != std::string::npos);

  switching.to("nftables", nlohmann::json::object(), "back to nftables");
  CHECK(soon([&] { return own_chains(world, "legacy").empty(); }));
  CHECK(own_chains(world, "nft").empty());
  CHECK(own_tables(world) == "table ip kube-shunt\ntable ip6 kube-shunt\n");
  CHECK(world.daemon_pid() == pid);
}

TEST_CASE("from iptables to ipvs and back: no connection breaks", "[ipvs]") {
  SHUNT_NEEDS_IPVS();
  LiveNode node;
  World& world = node.world;
  start_in_mode(world, "iptables", with_variant("nft"));
  Switching switching(world);
  switching.to("ipvs", nlohmann::json::object(), "to ipvs");
  CHECK(soon([&] { return own_chains(world, "nft").empty(); }));
  CHECK(saved_servers(world).find("-A -t 10.112.0.10:80 -s rr") != std::string::npos);
  switching.to("iptables", with_variant("nft"), "back to iptables");
  CHECK(saved_rules(world, "nft").find("10.64.0.2:8080") != std::string::npos);
}

}  // namespace
}  // namespace shunt::test
