// A node with a Service that answers at all its addresses, with connections that are held open and
// connections that come without end: what a change of modes must not disturb.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <future>
#include <map>
#include <memory>
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
  explicit LoadFromAll(const World& world, double share = 1) {
    start(world.lab().outside(), "198.51.100.8:0", kClusterIp, 80 * share);
    start(world.lab().outside(), "198.51.100.8:0", kNodePort, 40 * share);
    start(world.lab().place("client"), nullptr, kBalancer, 40 * share);
    start(world.lab().node(), nullptr, kClusterIp, 40 * share);
  }
  std::vector<lab::LoadReport> stop() {
    stop_.request_stop();
    std::vector<lab::LoadReport> out;
    for (auto& load : loads_) {
      out.push_back(load.get());
    }
    return out;
  }
  void stop_and_check(const char* when) {
    for (const lab::LoadReport& report : stop()) {
      INFO(when << ":\n" << to_text(report));
      std::printf("%s: %s", when, to_text(report).c_str());
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
    spec.question.timeout = std::chrono::seconds(5);
    spec.per_second = per_second;
    spec.parallel = 1'000;
    spec.time = std::chrono::seconds(300);
    loads_.push_back(std::async(std::launch::async, [this, &where, spec] {
      return run_load(where, spec, stop_.get_token());
    }));
  }

  std::stop_source stop_;
  std::vector<std::future<lab::LoadReport>> loads_;
};

// The share of it that this machine bears while nothing else happens: an emulated one, beside
// others, may not serve 200 connections a second, and then nothing could be learned from those that
// fail.
inline double bearable_share(const World& world) {
  constexpr int kAll = 200;
  for (int rate = kAll; rate >= kAll / 8; rate /= 2) {
    const double share = static_cast<double>(rate) / kAll;
    LoadFromAll load(world, share);
    std::this_thread::sleep_for(std::chrono::seconds(3));
    const std::vector<lab::LoadReport> reports = load.stop();
    const bool borne = std::ranges::all_of(reports, [](const lab::LoadReport& report) {
      return report.unanswered() == 0 && report.slowest < std::chrono::milliseconds(500);
    });
    if (borne) {
      std::printf("the load is %d connections a second\n", rate);
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
