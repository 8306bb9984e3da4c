#include "backend/conntrack/stale_flows.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

namespace shunt::backend::conntrack {
namespace {

using desired::EndpointList;
using desired::EndpointListPtr;
using net::Protocol;

net::SocketAddress address(const std::string& text) {
  return net::parse_socket_address(text).value();
}

desired::FrontendKey udp(const std::string& text) {
  const net::SocketAddress at = address(text);
  return {at.ip, Protocol::Udp, at.port};
}

EndpointListPtr list(const std::vector<std::string>& texts) {
  EndpointList out;
  for (const std::string& text : texts) {
    out.push_back(address(text));
  }
  std::sort(out.begin(), out.end());
  return std::make_shared<const EndpointList>(std::move(out));
}

// What one client sent to `to`, and where it went.
Flow flow(const std::string& to, const std::string& went_to, bool answered = true) {
  const net::SocketAddress client =
      address(to[0] == '[' ? "[2001:db8:e::7]:40000" : "198.51.100.7:40000");
  return {
      static_cast<std::uint8_t>(Protocol::Udp),
      {client, address(to)},
      {address(went_to), client},
      answered};
}

constexpr bool kUnanswered = false;

// 10.96.0.1:53 has two endpoints, 10.96.0.2:53 has none, NodePort 30053 has one, 30054 none.
struct World {
  World() {
    flows.set(udp("10.96.0.1:53"), list({"10.64.0.1:5353", "10.64.0.2:5353"}));
    flows.set(udp("10.96.0.2:53"), nullptr);
    flows.set(udp("0.0.0.0:30053"), list({"10.64.0.1:5353"}));
    flows.set(udp("0.0.0.0:30054"), nullptr);
    local = {net::parse_ip("10.80.0.10").value()};
  }
  bool stale(const Flow& of) const { return flows.is_stale(of, local); }

  StaleFlows flows;
  LocalAddresses local;
};

TEST_CASE("a flow is stale when it leads to an endpoint that does not serve its frontend") {
  const World world;
  struct Case {
    const char* name;
    Flow flow;
    bool stale;
  };
  const Case cases[] = {
      {"to a serving endpoint", flow("10.96.0.1:53", "10.64.0.2:5353"), false},
      {"to a serving endpoint, unanswered",
       flow("10.96.0.1:53", "10.64.0.2:5353", kUnanswered),
       false},
      {"to an endpoint that went", flow("10.96.0.1:53", "10.64.0.3:5353"), true},
      {"to another port of the endpoint", flow("10.96.0.1:53", "10.64.0.1:5354"), true},
      {"never redirected", flow("10.96.0.1:53", "10.96.0.1:53"), true},
      {"another port of the Service's address", flow("10.96.0.1:54", "10.64.0.3:5353"), false},
      {"another address with the Service's port", flow("10.96.0.9:53", "10.64.0.3:5353"), false},
      {"nobody serves, answered", flow("10.96.0.2:53", "10.64.0.1:5353"), false},
      {"nobody serves, unanswered", flow("10.96.0.2:53", "10.64.0.1:5353", kUnanswered), true},
      {"nobody serves, never redirected", flow("10.96.0.2:53", "10.96.0.2:53", kUnanswered), false},
      {"NodePort, to a serving endpoint", flow("10.80.0.10:30053", "10.64.0.1:5353"), false},
      {"NodePort, to an endpoint that went", flow("10.80.0.10:30053", "10.64.0.9:5353"), true},
      {"NodePort, on an address this node had once",
       flow("10.80.7.7:30053", "10.64.0.9:5353"),
       true},
      {"NodePort, never redirected", flow("10.80.0.10:30053", "10.80.0.10:30053"), true},
      {"this node's own flow to a stranger's port of that number",
       flow("203.0.113.5:30053", "203.0.113.5:30053"),
       false},
      {"NodePort that nobody serves, answered", flow("10.80.0.10:30054", "10.64.0.1:5353"), false},
      {"NodePort that nobody serves, unanswered",
       flow("10.80.0.10:30054", "10.64.0.1:5353", kUnanswered),
       true},
      {"NodePort that nobody serves, never redirected",
       flow("10.80.0.10:30054", "10.80.0.10:30054", kUnanswered),
       false},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) { CHECK(world.stale(c.flow) == c.stale); }
  }
}

TEST_CASE("other protocols are never stale") {
  const World world;
  Flow of = flow("10.96.0.1:53", "10.64.0.3:5353");
  REQUIRE(world.stale(of));
  for (const int protocol : {6, 132, 1, 33}) {
    of.protocol = static_cast<std::uint8_t>(protocol);
    CHECK_FALSE(world.stale(of));
  }
}

TEST_CASE("a frontend of another protocol is no frontend") {
  World world;
  desired::FrontendKey tcp = udp("10.96.0.9:53");
  tcp.protocol = Protocol::Tcp;
  world.flows.set(tcp, list({"10.64.0.1:5353"}));
  CHECK_FALSE(world.stale(flow("10.96.0.9:53", "10.64.0.3:5353")));
  tcp.ip = address("10.96.0.1:53").ip;
  world.flows.erase(tcp);
  CHECK(world.stale(flow("10.96.0.1:53", "10.64.0.3:5353")));
}

TEST_CASE("an address of a Service goes before a NodePort of the same number") {
  World world;
  world.flows.set(udp("10.80.0.10:30053"), list({"10.64.0.9:5353"}));
  CHECK_FALSE(world.stale(flow("10.80.0.10:30053", "10.64.0.9:5353")));
  CHECK(world.stale(flow("10.80.0.10:30053", "10.64.0.1:5353")));
}

TEST_CASE("a frontend that is gone is nobody's, one that comes back counts again") {
  World world;
  const Flow left = flow("10.96.0.1:53", "10.64.0.3:5353");
  world.flows.erase(udp("10.96.0.1:53"));
  CHECK_FALSE(world.stale(left));
  world.flows.set(udp("10.96.0.1:53"), list({"10.64.0.1:5353"}));
  CHECK(world.stale(left));
  world.flows.set(udp("10.96.0.1:53"), list({"10.64.0.3:5353"}));
  CHECK_FALSE(world.stale(left));
}

TEST_CASE("IPv6 flows are judged alike") {
  StaleFlows flows;
  flows.set(udp("[fdc0::1]:53"), list({"[fd64::1]:5353"}));
  flows.set(udp("[::]:30053"), list({"[fd64::1]:5353"}));
  const LocalAddresses local{net::parse_ip("fd80::10").value()};
  CHECK_FALSE(flows.is_stale(flow("[fdc0::1]:53", "[fd64::1]:5353"), local));
  CHECK(flows.is_stale(flow("[fdc0::1]:53", "[fd64::2]:5353"), local));
  CHECK(flows.is_stale(flow("[fd80::10]:30053", "[fd64::2]:5353"), local));
  CHECK(flows.is_stale(flow("[fd80::10]:30053", "[fd80::10]:30053"), local));
  CHECK_FALSE(flows.is_stale(flow("[2001:db8::5]:30053", "[2001:db8::5]:30053"), local));
}

}  // namespace
}  // namespace shunt::backend::conntrack
