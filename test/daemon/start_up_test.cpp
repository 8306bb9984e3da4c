// What the daemon sets and waits for at start, and when it leaves so that another one can start.

#include <sys/wait.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <functional>
#include <thread>

#include "daemon/needs_root.h"
#include "daemon/world.h"

namespace shunt::test {
namespace {

using nlohmann::json;

bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

bool says(const World& world, const std::string& text) {
  return eventually([&] { return world.daemon_log().find(text) != std::string::npos; });
}

std::string timeout_of(const World& world, const std::string& what) {
  return world.on_node("cat /proc/sys/net/netfilter/nf_conntrack_" + what);
}

TEST_CASE("connection tracking is set up at start, and what was not asked for stays") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  options.start_daemon = false;
  options.daemon_flags = {
      "--conntrack-tcp-timeout-established=90m", "--conntrack-udp-timeout-stream=77s"};
  World world(options);
  const std::string udp = timeout_of(world, "udp_timeout");
  world.start_daemon();
  world.settle();
  CHECK(timeout_of(world, "tcp_timeout_established") == "5400\n");
  CHECK(timeout_of(world, "tcp_timeout_close_wait") == "3600\n");
  CHECK(timeout_of(world, "udp_timeout_stream") == "77\n");
  CHECK(timeout_of(world, "udp_timeout") == udp);
}

TEST_CASE("a limit that cannot be set is a warning that says which, and Services work") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  // A network namespace may not set it; and no machine has this one.
  options.daemon_flags = {"--conntrack-max-per-core=1", "--conntrack-min=12345"};
  World world(options);
  CHECK(says(world, "nf_conntrack_max"));
  CHECK(says(world, "12345"));
  CHECK(world.settle().at("synced") == true);
}

TEST_CASE("with NodeCIDR the daemon waits for the Node's ranges, and follows them") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  options.daemon_flags = {"--detect-local-mode=NodeCIDR"};
  World world(options);
  const auto node = [](const char* range) {
    return json{
        {"apiVersion", "v1"},
        {"kind", "Node"},
        {"metadata", {{"name", "edge-a"}}},
        {"spec", {{"podCIDRs", {range}}}},
        {"status", {{"addresses", {{{"type", "InternalIP"}, {"address", "10.80.0.10"}}}}}}};
  };
  CHECK(says(world, "waiting for the Node's podCIDRs"));
  CHECK_FALSE(world.status().value().at("synced").get<bool>());
  const pid_t pid = world.daemon_pid();
  for (const char* range : {"10.64.0.0/24", "10.65.0.0/24"}) {
    world.apply({node(range)});
    world.settle();
    CHECK(world.on_node("nft list set ip kube-shunt pod-cidrs").find(range) != std::string::npos);
  }
  CHECK(world.daemon_pid() == pid);
}

}  // namespace
}  // namespace shunt::test
