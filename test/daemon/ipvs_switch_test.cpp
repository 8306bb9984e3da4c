// From nftables to ipvs and back on a node that works, by another configuration file: what is
// established lives on, what is new works at once, and in the end nothing of the other mode is
// left.

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <string>
#include <thread>

#include "daemon/live_node.h"
#include "daemon/processor_time.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;

// Everything that only the ipvs mode has on a node.
std::string traces_of_ipvs(const World& world) {
  return world.on_node(
      "ipvsadm -Sn; ip -o link show | grep kube-ipvs0; ip rule | grep 12112; ip -6 rule | grep "
      "12112;"
      "ip route show table 12112; ip -6 route show table 12112; ip route show table local | grep "
      "kube-ipvs0;"
      "ip -6 route show table local | grep kube-ipvs0; true");
}

// ip says "FIB table does not exist" of a table without routes.
bool is_trace(const std::string& line) {
  return !line.empty() && line.find("FIB table does not exist") == std::string::npos &&
         line.find("Dump terminated") == std::string::npos;
}

std::string without_noise(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    out += is_trace(line) ? line + "\n" : "";
  }
  return out;
}

std::string remaining_traces(const World& world, std::chrono::seconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::string traces = without_noise(traces_of_ipvs(world));
  while (!traces.empty() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(500ms);
    traces = without_noise(traces_of_ipvs(world));
  }
  return traces;
}

// What nft prints of our tables, without what packets and Services put there.
std::string program(const World& world) {
  return world.on_node(
      "for f in ip ip6; do nft list table $f kube-shunt | sed -E '/elements = \\{/,/\\}/d; "
      "s/packets "
      "[0-9]+ bytes [0-9]+//'; done");
}

TEST_CASE("from nftables to ipvs and back: no connection breaks, no trace stays", "[ipvs]") {
  SHUNT_NEEDS_IPVS();
  LiveNode node;
  World& world = node.world;
  start_in_mode(world, "nftables");
  const std::string program_of_nftables = program(world);
  CHECK(without_noise(traces_of_ipvs(world)).empty());
  const pid_t pid = world.daemon_pid();
  const double share = bearable_share(world);
  HeldConnections held(world);
  held.open_more();
  held.check_alive();
  const auto switch_under_load = [&](const char* mode, std::size_t number, const char* when) {
    {
      LoadFromAll load(world, share);
      std::this_thread::sleep_for(2s);
      const auto begin = std::chrono::steady_clock::now();
      const double busy = processor_time(world.daemon_pid());
      switch_to(world, mode, number);
      std::printf(
          "%s: in sync after %.1f s, of which the daemon worked %.1f s\n",
          when,
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
          processor_time(world.daemon_pid()) - busy);
      held.check_alive();
      held.open_more();
      std::this_thread::sleep_for(2s);
      load.stop_and_check(when);
    }
    held.check_alive();
  };

  switch_under_load("ipvs", 1, "to ipvs");
  CHECK(saved_servers(world).find("-A -t 10.112.0.10:80 -s rr") != std::string::npos);
  CHECK(program(world) != program_of_nftables);  // or nothing was to be seen here

  switch_under_load("nftables", 2, "back to nftables");
  std::printf("%zu connections held open\n", held.size());
  // What IPVS still carries keeps what it needs. Longer than the kernel remembers connections that
  // were reset, and than any look of ours is apart.
  std::this_thread::sleep_for(15s);
  CHECK(saved_servers(world).find("-t 10.112.0.10:80") != std::string::npos);
  held.check_alive();

  held.close();
  // The kernel remembers closed connections for two minutes, those of the load among them.
  const std::string traces = remaining_traces(world, 180s);
  INFO(traces);
  CHECK(traces.empty());
  CHECK(program(world) == program_of_nftables);
  CHECK(world.daemon_pid() == pid);
  HeldConnections after(world);
  after.open_more();
  after.check_alive();
}

TEST_CASE(
    "a switch back that a kill interrupts is brought to its end by the next start", "[ipvs]") {
  SHUNT_NEEDS_IPVS();
  LiveNode node;
  World& world = node.world;
  start_in_mode(world, "ipvs");
  HeldConnections held(world);
  held.open_more();
  switch_to(world, "nftables", 1);
  held.check_alive();
  world.kill_daemon();
  held.check_alive();
  world.start_daemon();
  world.settle(60s);
  held.check_alive();
  held.close();
  const std::string traces = remaining_traces(world, 180s);
  INFO(traces);
  CHECK(traces.empty());
}

}  // namespace
}  // namespace shunt::test
