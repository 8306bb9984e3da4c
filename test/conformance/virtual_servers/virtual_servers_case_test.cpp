#include "virtual_servers/virtual_servers_case.h"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

namespace shunt::conformance::virtual_servers {
namespace {

using nlohmann::json;

json case_of(const json& step) {
  return {
      {"id", "x"},
      {"settings",
       {{"family", "IPv6"},
        {"nodeName", "edge-a"},
        {"zone", "north"},
        {"scheduler", "wlc"},
        {"excludeCIDRs", {"172.29.3.0/24"}},
        {"nodePortAddresses", {"primary"}},
        {"interfaces",
         {{"lo", {"127.0.0.1", "::1"}}, {"uplink0", {"10.80.0.10", "fd80::10", "fe80::1"}}}}}},
      {"found", {{"servers", {{"[fdc0::9]:53/UDP", json::object()}}}, {"bound", {"fdc0::9"}}}},
      {"steps", json::array({step})}};
}

TEST_CASE("a case is read whole") {
  const Case read = parse_case(case_of(
      {{"delete", json::array({json{{"kind", "Service"}}})},
       {"agent", "restart"},
       {"scheduler", "sh"},
       {"waitSeconds", 3},
       {"disturb",
        json::array(
            {json{{"server", "[fdc0::1]:80/TCP"}, {"real", "[fd64::1]:80"}, {"weight", 0}}})},
       {"connections",
        json::array(
            {json{{"server", "[fdc0::1]:80/TCP"}, {"real", "[fd64::1]:80"}, {"active", 4}}})},
       {"expect", {{"servers", json::object()}, {"bound", json::array()}}}}));
  CHECK(read.family == net::Family::IPv6);
  CHECK(read.zone == "north");
  CHECK(read.settings.ipvs_scheduler == "wlc");
  CHECK(read.settings.ipvs_exclude_cidrs == std::vector<std::string>{"172.29.3.0/24"});
  CHECK(read.settings.node_port_addresses == std::vector<std::string>{"primary"});
  CHECK(node_addresses(read).size() == 2);
  CHECK(read.found_servers.contains("[fdc0::9]:53/UDP"));
  CHECK(read.found_bound.size() == 1);
  const Step& step = read.steps.front();
  CHECK(step.restart);
  CHECK(step.scheduler == "sh");
  CHECK(step.wait == std::chrono::seconds(3));
  CHECK(step.disturb.front().weight == 0);
  CHECK(step.connections->begin()->second == Counts{4, 0});
  CHECK(step.servers == json::object());
  CHECK(step.bound->empty());
}

TEST_CASE("what is not said is not judged, and what is not known is refused") {
  const Step step = parse_case(case_of(json::object())).steps.front();
  CHECK_FALSE(step.connections);
  CHECK_FALSE(step.servers);
  CHECK_FALSE(step.bound);
  CHECK_THROWS_AS(parse_case(case_of({{"agent", "down"}})), std::invalid_argument);
}

}  // namespace
}  // namespace shunt::conformance::virtual_servers
