// bench_iptables [--variant nft|legacy] [--services N] [--flips N] [--kube-proxy PATH]: what the
// flip of one endpoint among N Services takes in mode iptables, from the API server's answer to the
// first connection that arrives at the other endpoint, beside what iptables-restore takes on this
// machine to change one rule among as many. A kube-proxy that is named is measured after us, in the
// same way, with its own word for its partial syncs. Medians. Needs root.

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/iptables_world.h"
#include "netns/client.h"
#include "netns/echo_server.h"

namespace {

using namespace shunt;
using namespace shunt::test;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using nlohmann::json;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

// Services that nobody asks, and one that is asked.
struct Cluster {
  explicit Cluster(unsigned services) {
    std::vector<json> objects;
    for (unsigned i = 0; i < services; ++i) {
      const std::string name = fmt::format("load-{}", i);
      objects.push_back(service(name, {fmt::format("10.112.{}.{}", 1 + i / 250, 1 + i % 250)}));
      objects.push_back(slice(name, "IPv4", {"10.64.0.11", "10.64.0.12"}));
    }
    world.apply(objects);
    world.apply({service("web", {"10.112.0.10"}), slice("web", "IPv4", {"10.64.0.1"})});
  }
  bool reaches(const std::string& who, Clock::duration patience) const {
    lab::Question question;
    question.from = address("198.51.100.7:0");
    question.to = address("10.112.0.10:80");
    question.timeout = 100ms;
    for (const auto begin = Clock::now(); Clock::now() - begin < patience;) {
      if (lab::ask(world.lab().outside(), question).by == who) {
        return true;
      }
    }
    return false;
  }
  double flip(int number) const {
    const bool to_two = number % 2 == 0;
    world.apply({slice("web", "IPv4", {to_two ? "10.64.0.2" : "10.64.0.1"})});
    const auto begin = Clock::now();
    if (!reaches(to_two ? "two" : "one", 120s)) {
      throw std::runtime_error("a flip does not arrive");
    }
    return ms_since(begin);
  }
  std::vector<double> flips(int count) const {
    std::vector<double> out;
    for (int i = 0; i < count; ++i) {
      out.push_back(flip(i));
      std::this_thread::sleep_for(50ms);
    }
    if (count % 2 == 1) {
      (void)flip(count);  // as it was
    }
    return out;
  }

  World world{configured_by_file()};
  lab::EchoServer one{
      world.lab().place("pods"), net::Protocol::Tcp, address("10.64.0.1:8080"), "one"};
  lab::EchoServer two{
      world.lab().place("pods"), net::Protocol::Tcp, address("10.64.0.2:8080"), "two"};
};

// What an agent says itself of its partial syncs, in ms each.
std::optional<double> partial_sync(const World& world) {
  const std::string text = world.get(10249, "/metrics").body;
  const auto value = [&](const std::string& name) -> std::optional<double> {
    double sum = 0;
    bool any = false;
    for (std::size_t at = text.find("\n" + name); at != std::string::npos;
         at = text.find("\n" + name, at + 1)) {
      const std::size_t end = text.find('\n', at + 1);
      const std::size_t space = text.rfind(' ', end);
      sum += std::stod(text.substr(space + 1, end - space - 1));
      any = true;
    }
    return any ? std::optional(sum) : std::nullopt;
  };
  const std::string name = "kubeproxy_sync_partial_proxy_rules_duration_seconds";
  const auto sum = value(name + "_sum");
  const auto count = value(name + "_count");
  return sum && count && *count > 0 ? std::optional(*sum / *count * 1000) : std::nullopt;
}

void print(const char* who, const std::vector<double>& flips, double floor, const World& world) {
  const auto own = partial_sync(world);
  fmt::print(
      "{:<12} flip {:8.1f} ms ({:.2f} x the floor); its own partial syncs {} on average\n",
      who,
      median(flips),
      median(flips) / floor,
      own ? fmt::format("{:.1f} ms", *own) : "unknown");
}

// One rule changed by hand, among all that are there.
double floor_of(const World& world, const std::string& variant, int rounds) {
  std::vector<double> out;
  world.on_node("iptables-" + variant + " -w 5 -t nat -N BENCH");
  for (int i = 0; i < rounds; ++i) {
    const auto begin = Clock::now();
    world.on_node(fmt::format(
        "printf '*nat\\n:BENCH - [0:0]\\n-A BENCH -s 192.0.2.{}/32 -j RETURN\\nCOMMIT\\n' | "
        "iptables-{}-restore --wait 5 --noflush",
        1 + i % 200,
        variant));
    out.push_back(ms_since(begin));
  }
  world.on_node(
      "iptables-" + variant + " -w 5 -t nat -F BENCH; iptables-" + variant +
      " -w 5 -t nat -X BENCH");
  return median(out);
}

lab::Process start_kube_proxy(
    const World& world, const std::string& program, const std::string& variant) {
  const std::string path = world.directory() + "/other.yaml";
  std::ofstream(path) << json{
      {"apiVersion", "kubeproxy.config.k8s.io/v1alpha1"},
      {"kind", "KubeProxyConfiguration"},
      {"mode", "iptables"},
      {"clientConnection", {{"kubeconfig", world.directory() + "/pki/kubeconfig"}}},
      {"hostnameOverride", "edge-a"},
      {"clusterCIDR", "10.64.0.0/14,fd64::/48"},
      {"iptables", {{"minSyncPeriod", "0s"}}},
      {"conntrack", {{"maxPerCore", 0}, {"min", 0}}}};
  // Whichever iptables it finds first is the one that it takes.
  const std::string tools = world.directory() + "/tools";
  world.on_node(
      "mkdir -p " + tools +
      "; for t in iptables iptables-save iptables-restore ip6tables ip6tables-save "
      "ip6tables-restore; do ln -sf $(command -v xtables-" +
      variant + "-multi) " + tools + "/$t; done");
  lab::ProcessSpec spec;
  spec.argv = {program, "--config", path};
  spec.env = {"PATH=" + tools + ":/usr/sbin:/usr/bin:/sbin:/bin"};
  spec.log_file = world.directory() + "/other.log";
  return {world.lab().node(), spec};
}

void measure(
    const std::string& variant, unsigned services, int flips, const std::string& kube_proxy) {
  Cluster cluster(services);
  World& world = cluster.world;
  start_in_mode(world, "iptables", with_variant(variant));
  const double floor = floor_of(world, variant, std::min(flips, 21));
  fmt::print(
      "iptables-{}, {} Services x 2 endpoints\nfloor        one rule by iptables-restore {:.1f} "
      "ms\n",
      variant,
      services,
      floor);
  print("kube-shunt", cluster.flips(flips), floor, world);
  (void)world.stop_daemon();
  if (kube_proxy.empty()) {
    fmt::print("kube-proxy   nobody named one (--kube-proxy)\n");
    return;
  }
  lab::Process other = start_kube_proxy(world, kube_proxy, variant);
  std::this_thread::sleep_for(5s);
  (void)cluster.flip(0);  // it is in sync by then
  (void)cluster.flip(1);
  print("kube-proxy", cluster.flips(flips), floor, world);
  (void)other.terminate();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CLI::App app("flips in mode iptables");
    std::string variant = "nft";
    std::string kube_proxy;
    unsigned services = 5'000;
    int flips = 41;
    app.add_option("--variant", variant)->check(CLI::IsMember({"nft", "legacy"}));
    app.add_option("--services", services);
    app.add_option("--flips", flips)->check(CLI::PositiveNumber);
    app.add_option("--kube-proxy", kube_proxy)->check(CLI::ExistingFile);
    CLI11_PARSE(app, argc, argv);
    measure(variant, services, flips, kube_proxy);
    return 0;
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "bench_iptables: %s\n", error.what());
    return 1;
  }
}
