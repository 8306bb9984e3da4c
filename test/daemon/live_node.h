// A node with a Service that answers at all its addresses, with connections that are held open and
// connections that come without end: what a change of modes must not disturb.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/held_connection.h"
#include "daemon/ipvs_world.h"
#include "daemon/load.h"

namespace shunt::test {

inline constexpr const char* kClusterIp = "10.112.0.10:80";
inline constexpr const char* kNodePort = "10.80.0.10:30080";
inline constexpr const char* kBalancer = "192.0.2.4:80";

inline lab::LabSpec client_and_two_pods() {
  lab::LabSpec spec = lab::default_lab_spec();
  for (const auto& [name, ip] :
       {std::pair("client", "10.64.0.9"),
        std::pair("web1", "10.64.0.1"),
        std::pair("web2", "10.64.0.2")}) {
    spec.pods.push_back({name, {net::parse_ip(ip).value()}});
  }
  return spec;
}

inline nlohmann::json web() {
  nlohmann::json out = service("web", {"10.112.0.10"});
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

// What the kernel lost on the way and why, as far as it counts that: packets that no processor came
// to (softnet, the second column), entries of conntrack that clashed, listeners that nobody
// emptied.
inline std::string losses(const World& world) {
  return world.on_node(
      "cut -d' ' -f1-3 /proc/net/softnet_stat; conntrack -S; "
      "for n in $(ip netns list | cut -d' ' -f1 | grep ^shunt-); do echo $n; "
      "ip netns exec $n nstat -as | grep -E 'Listen|BacklogDrop|ReqQFull|RetransSegs|SynRetrans'; "
      "done; true");
}

// Packets that came while a processor's queue of received ones was full, since the machine started.
inline std::uint64_t dropped_for_lack_of_time() {
  std::ifstream processors("/proc/net/softnet_stat");
  std::uint64_t sum = 0;
  for (std::string line; std::getline(processors, line);) {
    std::istringstream columns(line);
    std::uint64_t processed = 0;
    std::uint64_t dropped = 0;
    columns >> std::hex >> processed >> dropped;
    sum += dropped;
  }
  return sum;
}

// From an outsider, a pod and the node, to each of the Service's addresses.
class HeldConnections {
 public:
  explicit HeldConnections(const World& world) : world_(&world) {}

  void open_more() {
    try {
      for (const char* to : {kClusterIp, kNodePort, kBalancer}) {
        held_.emplace_back(world_->lab().outside(), address("198.51.100.7:0"), address(to));
        held_.emplace_back(world_->lab().place("client"), std::nullopt, address(to));
        held_.emplace_back(world_->lab().node(), std::nullopt, address(to));
      }
    } catch (const std::exception& why) {
      throw std::runtime_error(why.what() + std::string("\n") + losses(*world_));
    }
  }
  void check_alive() {
    for (std::size_t i = 0; i < held_.size(); ++i) {
      if (held_[i].exchanges()) {
        continue;
      }
      INFO("connection " << i << " of " << held_.size() << ": " << held_[i].name());
      INFO(world_->on_node("conntrack -L 2>/dev/null | grep " + held_[i].from_port() + " || true"));
      INFO(world_->on_node(
          "ipvsadm -Lnc 2>/dev/null | grep " + held_[i].from_port() +
          "; ipvsadm -Ln; ip rule || true"));
      FAIL_CHECK("a connection broke");
    }
  }
  std::size_t size() const { return held_.size(); }
  void close() { held_.clear(); }

 private:
  const World* world_;
  std::vector<HeldConnection> held_;
};

// New connections, 200 a second in all (or that share of it), from everywhere to everything.
class LoadFromAll {
 public:
  explicit LoadFromAll(const World& world, double share = 1) : world_(&world) {
    start(world.lab().outside(), "198.51.100.8:0", kClusterIp, 80 * share);
    start(world.lab().outside(), "198.51.100.8:0", kNodePort, 40 * share);
    start(world.lab().place("client"), nullptr, kBalancer, 40 * share);
    start(world.lab().node(), nullptr, kClusterIp, 40 * share);
  }
  ~LoadFromAll() { stop_.request_stop(); }  // what throws does not wait for the load's own end
  LoadFromAll(const LoadFromAll&) = delete;
  LoadFromAll& operator=(const LoadFromAll&) = delete;

  std::vector<lab::LoadReport> stop() {
    stop_.request_stop();
    std::vector<lab::LoadReport> out;
    for (auto& load : loads_) {
      out.push_back(load.get());
    }
    return out;
  }
  void stop_and_check(const char* when) {
    const std::vector<lab::LoadReport> reports = stop();
    const std::uint64_t dropped = dropped_for_lack_of_time() - dropped_before_;
    std::size_t unanswered = 0;
    for (const lab::LoadReport& report : reports) {
      std::printf("%s: %s", when, to_text(report).c_str());
      say_failures(report);
      unanswered += report.unanswered();
      CHECK(report.total() > 0);
    }
    if (unanswered == 0) {
      return;
    }
    std::printf("%s", losses(*world_).c_str());
    if (dropped > 0) {
      SKIP(
          "this machine dropped " << dropped << " packets for lack of time, " << unanswered
                                  << " questions had no answer (" << when << ")");
    }
    FAIL_CHECK(unanswered << " questions had no answer (" << when << ")");
  }

 private:
  static void say_failures(const lab::LoadReport& report) {
    std::map<std::pair<long long, std::string>, int> kinds;  // by the second of the question
    for (const lab::LoadReport::Failure& failure : report.failures) {
      const char* const what =
          failure.sys_errno == 0 ? "silence" : std::strerror(failure.sys_errno);
      ++kinds[{failure.begun.count() / 1000, what}];
    }
    for (const auto& [kind, number] : kinds) {
      std::printf(
          "  asked in second %lld: %s, %d times\n", kind.first, kind.second.c_str(), number);
    }
  }
  void start(const lab::Netns& where, const char* from, const char* to, double per_second) {
    lab::LoadSpec spec;
    if (from != nullptr) {
      spec.question.from = address(from);
    }
    spec.question.to = address(to);
    spec.question.timeout = std::chrono::seconds(5);
    spec.per_second = per_second;
    spec.parallel = 1'000;
    spec.time = std::chrono::seconds(300);
    loads_.push_back(std::async(std::launch::async, [this, &where, spec] {
      return run_load(where, spec, stop_.get_token());
    }));
  }

  const World* world_;
  std::uint64_t dropped_before_ = dropped_for_lack_of_time();
  std::stop_source stop_;
  std::vector<std::future<lab::LoadReport>> loads_;
};

// The share of it of which this machine bears four times as much while nothing else happens: an
// emulated one may not serve 200 connections a second beside a switch, which takes all of its
// processor for seconds, and then nothing could be learned from those that fail.
inline double bearable_share(const World& world) {
  constexpr double kReserve = 4;
  for (double share = 1; share >= 1.0 / 32; share /= 2) {
    LoadFromAll load(world, kReserve * share);
    std::this_thread::sleep_for(std::chrono::seconds(3));
    const std::vector<lab::LoadReport> reports = load.stop();
    const bool borne = std::ranges::all_of(reports, [](const lab::LoadReport& report) {
      return report.unanswered() == 0 && report.slowest < std::chrono::milliseconds(500);
    });
    if (borne) {
      std::printf("the load is %.0f connections a second\n", 200 * share);
      return share;
    }
  }
  SKIP("this machine does not serve 25 connections a second while nothing happens");
  return 0;
}

inline void switch_to(
    const World& world,
    const char* mode,
    std::size_t nth_switch,
    const nlohmann::json& more = nlohmann::json::object()) {
  write_mode(world, mode, more);
  world.await_log("configuration read again", nth_switch);
  world.settle(std::chrono::seconds(60));
  CHECK(world.get(10249, "/proxyMode").body == mode);
}

}  // namespace shunt::test
