// From nftables to ipvs and back on a node that works, by another configuration file: what is
// established lives on, what is new works at once, and in the end nothing of the other mode is
// left.

#include <sys/socket.h>

#include <cstdio>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "daemon/held_connection.h"
#include "daemon/ipvs_world.h"
#include "daemon/load.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr const char* kClusterIp = "10.112.0.10:80";
constexpr const char* kNodePort = "10.80.0.10:30080";
constexpr const char* kBalancer = "192.0.2.4:80";

lab::LabSpec client_and_two_pods() {
  lab::LabSpec spec = lab::default_lab_spec();
  for (const auto& [name, ip] :
       {std::pair("client", "10.64.0.9"),
        std::pair("web1", "10.64.0.1"),
        std::pair("web2", "10.64.0.2")}) {
    spec.pods.push_back({name, {net::parse_ip(ip).value()}});
  }
  return spec;
}

json web() {
  json out = service("web", {"10.112.0.10"});
  out["spec"]["type"] = "LoadBalancer";
  out["spec"]["ports"][0]["nodePort"] = 30080;
  out["status"]["loadBalancer"]["ingress"] = {{{"ip", "192.0.2.4"}}};
  return out;
}

struct LiveNode {
  LiveNode() { world.apply({web(), slice("web", "IPv4", {"10.64.0.1", "10.64.0.2"})}); }
  World world{configured_by_file(client_and_two_pods())};
  lab::EchoServer one{
      world.lab().place("web1"), net::Protocol::Tcp, address("10.64.0.1:8080"), "one"};
  lab::EchoServer two{
      world.lab().place("web2"), net::Protocol::Tcp, address("10.64.0.2:8080"), "two"};
};

// From an outsider, a pod and the node, to each of the Service's addresses.
class HeldConnections {
 public:
  explicit HeldConnections(const World& world) : world_(&world) {}

  void open_more() {
    for (const char* to : {kClusterIp, kNodePort, kBalancer}) {
      held_.emplace_back(world_->lab().outside(), address("198.51.100.7:0"), address(to));
      held_.emplace_back(world_->lab().place("client"), std::nullopt, address(to));
      held_.emplace_back(world_->lab().node(), std::nullopt, address(to));
    }
  }
  void check_alive() { test::check_alive(held_); }
  std::size_t size() const { return held_.size(); }
  void close() { held_.clear(); }

 private:
  const World* world_;
  std::vector<HeldConnection> held_;
};

// New connections, 200 a second in all, from everywhere to everything.
class LoadFromAll {
 public:
  LoadFromAll(const World& world) {  // NOLINT(google-explicit-constructor): a test
    start(world.lab().outside(), "198.51.100.8:0", kClusterIp, 80);
    start(world.lab().outside(), "198.51.100.8:0", kNodePort, 40);
    start(world.lab().place("client"), nullptr, kBalancer, 40);
    start(world.lab().node(), nullptr, kClusterIp, 40);
  }
  void stop_and_check(const char* when) {
    stop_.request_stop();
    for (auto& load : loads_) {
      const lab::LoadReport report = load.get();
      INFO(when << ":\n" << to_text(report));
      std::printf("%s: %s", when, to_text(report).c_str());
      CHECK(report.unanswered() == 0);
      CHECK(report.total() > 0);
    }
  }

 private:
  void start(const lab::Netns& where, const char* from, const char* to, double per_second) {
    lab::LoadSpec spec;
    if (from != nullptr) {
      spec.question.from = address(from);
    }
    spec.question.to = address(to);
    spec.question.timeout = 5s;
    spec.per_second = per_second;
    spec.parallel = 1'000;
    spec.time = 300s;
    loads_.push_back(std::async(std::launch::async, [this, &where, spec] {
      return run_load(where, spec, stop_.get_token());
    }));
  }

  std::stop_source stop_;
  std::vector<std::future<lab::LoadReport>> loads_;
};

void switch_to(const World& world, const char* mode, std::size_t nth_switch) {
  write_mode(world, mode);
  world.await_log("configuration read again", nth_switch);
  world.settle(60s);
  CHECK(world.get(10249, "/proxyMode").body == mode);
}

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
  HeldConnections held(world);
  held.open_more();
  held.check_alive();
  const auto switch_under_load = [&](const char* mode, std::size_t number, const char* when) {
    {
      LoadFromAll load(world);
      std::this_thread::sleep_for(2s);
      switch_to(world, mode, number);
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
