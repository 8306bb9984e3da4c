// A Service whose balancer address is for some sources only, and clients that are allowed or denied
// while those change.
#pragma once

#include <array>
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "daemon/world.h"
#include "netns/client.h"

namespace shunt::test {

inline constexpr const char* kAllowed = "198.51.100.7:0";
inline constexpr const char* kDenied = "198.51.100.200:0";

inline nlohmann::json balancer_for(const std::vector<std::string>& ranges) {
  nlohmann::json out = service("web", {"10.112.0.10"});
  out["spec"]["type"] = "LoadBalancer";
  out["spec"]["ports"][0]["nodePort"] = 30080;
  out["spec"]["loadBalancerSourceRanges"] = ranges;
  out["status"]["loadBalancer"]["ingress"] = {{{"ip", "192.0.2.4"}}};
  return out;
}

// One of several lists: each holds kAllowed and not kDenied, in another way.
inline std::vector<std::string> ranges_of(int number) {
  const std::vector<std::vector<std::string>> lists{
      {"198.51.100.0/25"},
      {"198.51.100.0/26", "203.0.113.0/24"},
      {"198.51.100.7/32"},
      {"198.51.100.0/28", "198.51.100.128/26", "198.51.100.208/28"},
      {"10.0.0.0/8", "198.51.100.0/29", "198.51.100.64/26"}};
  return lists[static_cast<std::size_t>(number) % lists.size()];
}

// Asks the balancer's address from outside, at a steady rate, until told to stop or for `at_most`.
class SteadyClient {
 public:
  SteadyClient(
      const World& world,
      const std::string& from,
      std::chrono::milliseconds timeout,
      double per_second,
      std::chrono::seconds at_most)
      : thread_([=, &world, this](const std::stop_token& stop) {
          lab::LoadSpec load;
          load.question.from = address(from);
          load.question.to = address("192.0.2.4:80");
          load.question.timeout = timeout;
          load.per_second = per_second;
          load.parallel = 2'000;
          load.time = at_most;
          report_ = lab::run_load(world.lab().outside(), load, stop);
        }) {}
  const lab::LoadReport& stop() {
    thread_.request_stop();
    thread_.join();
    return report_;
  }

 private:
  lab::LoadReport report_;
  std::jthread thread_;
};

}  // namespace shunt::test
