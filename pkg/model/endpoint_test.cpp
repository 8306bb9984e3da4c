#include "model/endpoint.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>

namespace shunt::model {
namespace {

using SlicePtr = std::shared_ptr<const kube::EndpointSlice>;
using Slices = std::vector<SlicePtr>;
using Texts = std::vector<std::string>;

enum class State { Ready, Unready, Draining, Dead };

kube::SliceEndpoint at(std::string_view ip, State state = State::Ready, std::string node = {}) {
  kube::SliceEndpoint e;
  e.address = net::parse_ip(ip);
  e.ready = state == State::Ready;
  e.serving = state == State::Ready || state == State::Draining;
  e.terminating = state == State::Draining || state == State::Dead;
  e.node_name = std::move(node);
  return e;
}

SlicePtr slice(
    std::string name,
    std::vector<kube::SliceEndpoint> endpoints,
    std::vector<kube::SlicePort> ports = {{"http", "TCP", 8080}}) {
  kube::EndpointSlice s;
  s.meta.key = {"shop", std::move(name)};
  s.service_name = "web";
  s.address_type = "IPv4";
  s.endpoints = std::move(endpoints);
  s.ports = std::move(ports);
  return std::make_shared<const kube::EndpointSlice>(std::move(s));
}

ServiceEndpoints merge(const Slices& slices, net::Family family = net::Family::IPv4) {
  return merge_slices(slices, family, "edge-a");
}

// "http/TCP 10.0.0.1:80 ready local", a line an endpoint.
Texts lines(const ServiceEndpoints& endpoints) {
  Texts lines;
  for (const PortEndpoints& port : endpoints.ports) {
    for (const Endpoint& e : port.endpoints) {
      std::string line = port.port + "/" + std::string(net::to_string(port.protocol)) + " " +
                         net::to_string(e.address);
      line += e.ready ? " ready" : "";
      line += e.serving && !e.ready ? " serving" : "";
      line += e.terminating ? " terminating" : "";
      line += e.local ? " local" : "";
      lines.push_back(line);
    }
  }
  return lines;
}

TEST_CASE("endpoints of all slices join under their port, sorted by address") {
  const ServiceEndpoints got = merge({
      slice("a", {at("10.64.0.10"), at("10.64.0.9", State::Ready, "edge-a")}),
      slice("b", {at("10.64.1.1", State::Unready, "edge-b")}),
  });
  CHECK(
      lines(got) == Texts{
                        "http/TCP 10.64.0.9:8080 ready local",
                        "http/TCP 10.64.0.10:8080 ready",
                        "http/TCP 10.64.1.1:8080"});
  CHECK(got.issues.empty());
}

TEST_CASE("port names and protocols stay apart, port numbers do not") {
  const ServiceEndpoints got = merge({
      slice("a", {at("10.64.0.1")}, {{"dns", "UDP", 5300}, {"dns", "TCP", 5353}}),
      slice("b", {at("10.64.0.1")}, {{"dns", "", 5354}}),
  });
  CHECK(
      lines(got) == Texts{
                        "dns/TCP 10.64.0.1:5353 ready",
                        "dns/TCP 10.64.0.1:5354 ready",
                        "dns/UDP 10.64.0.1:5300 ready"});
  REQUIRE(find(got, "dns", net::Protocol::Udp) != nullptr);
  CHECK(find(got, "dns", net::Protocol::Udp)->endpoints.size() == 1);
  CHECK(find(got, "dns", net::Protocol::Sctp) == nullptr);
  CHECK(find(got, "", net::Protocol::Tcp) == nullptr);
}

TEST_CASE("odd ports and addresses are set aside and named") {
  const ServiceEndpoints got = merge({slice(
      "a",
      {kube::SliceEndpoint{}, at("fd64::1"), at("10.64.0.1")},
      {{std::nullopt, "TCP", 80},
       {"none", "TCP", 0},
       {"big", "TCP", 65536},
       {"quic", "QUIC", 443},
       {"", "", 80}})});
  CHECK(lines(got) == Texts{"/TCP 10.64.0.1:80 ready"});
  CHECK(
      got.issues == Texts{
                        "slice shop/a: a port has no name",
                        "slice shop/a: port \"none\": number 0 is no port",
                        "slice shop/a: port \"big\": number 65536 is no port",
                        "slice shop/a: port \"quic\": unknown protocol \"QUIC\"",
                        "slice shop/a: 2 endpoint(s) without an address of the slice's family"});
}

TEST_CASE("slices of another family contribute nothing, ports without endpoints neither") {
  kube::EndpointSlice v6 = *slice("a", {at("fd64::1")});
  v6.address_type = "IPv6";
  const Slices slices{std::make_shared<const kube::EndpointSlice>(v6), slice("b", {}), nullptr};
  CHECK(merge(slices) == ServiceEndpoints{});
  CHECK(lines(merge(slices, net::Family::IPv6)) == Texts{"http/TCP [fd64::1]:8080 ready"});
}

TEST_CASE("without a node name nothing is local") {
  const Slices slices{slice("a", {at("10.64.0.1")})};
  CHECK_FALSE(merge_slices(slices, net::Family::IPv4, "").ports[0].endpoints[0].local);
}

TEST_CASE("hints become sets") {
  kube::SliceEndpoint e = at("10.64.0.1");
  e.zone_hints = {"z2", "z1", "z2"};
  e.node_hints = {"edge-b", "edge-a"};
  const ServiceEndpoints merged = merge({slice("a", {e})});
  CHECK(merged.ports[0].endpoints[0].zone_hints == Texts{"z1", "z2"});
  CHECK(merged.ports[0].endpoints[0].node_hints == Texts{"edge-a", "edge-b"});
}

TEST_CASE("one address listed several times counts once") {
  using enum State;
  constexpr const char* kIp = "10.64.0.1";
  struct Case {
    const char* name;
    Slices slices;
    std::string line;
  };
  const Case cases[] = {
      {"a living entry is not hidden by its terminating past",
       {slice("a", {at(kIp, Draining), at(kIp, Unready), at(kIp, Draining)})},
       "http/TCP 10.64.0.1:8080"},
      {"of terminating entries of a slice the first stays",
       {slice("a", {at(kIp, Draining), at(kIp, Dead)})},
       "http/TCP 10.64.0.1:8080 serving terminating"},
      {"of living entries of a slice the last stays",
       {slice("a", {at(kIp, Ready), at(kIp, Unready)})},
       "http/TCP 10.64.0.1:8080"},
      {"between slices the living one counts",
       {slice("a", {at(kIp, Draining)}), slice("b", {at(kIp, Unready)})},
       "http/TCP 10.64.0.1:8080"},
      {"between slices the ready one counts",
       {slice("a", {at(kIp, Ready)}), slice("b", {at(kIp, Unready)})},
       "http/TCP 10.64.0.1:8080 ready"},
      {"between slices a serving one beats a dead one",
       {slice("a", {at(kIp, Dead)}), slice("b", {at(kIp, Draining)})},
       "http/TCP 10.64.0.1:8080 serving terminating"},
      {"between equals the first slice by name counts",
       {slice("b", {at(kIp, Ready)}), slice("a", {at(kIp, Ready, "edge-a")})},
       "http/TCP 10.64.0.1:8080 ready local"},
  };
  for (Case c : cases) {
    DYNAMIC_SECTION(c.name) {
      CHECK(lines(merge(c.slices)) == Texts{c.line});
      std::reverse(c.slices.begin(), c.slices.end());
      CHECK(lines(merge(c.slices)) == Texts{c.line});
    }
  }
}

TEST_CASE("local ready addresses are counted once, whatever their ports") {
  using enum State;
  const std::vector<kube::SlicePort> two_ports{{"http", "TCP", 80}, {"https", "TCP", 443}};
  CHECK(local_ready_addresses({}) == 0);
  CHECK(
      local_ready_addresses(merge({
          slice(
              "a", {at("10.64.0.1", Ready, "edge-a"), at("10.64.1.1", Ready, "edge-b")}, two_ports),
          slice("b", {at("10.64.0.2", Draining, "edge-a"), at("10.64.0.3", Unready, "edge-a")}),
          slice("c", {at("10.64.0.1", Ready, "edge-a"), at("10.64.0.4", Ready, "edge-a")}),
      })) == 2);
}

// Few addresses, nodes and names, so that duplicates are the rule.
Slices any_slices(std::mt19937& engine) {
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(engine); };
  Slices slices;
  for (int i = below(5); i > 0; --i) {
    kube::EndpointSlice s;
    s.meta.key = {"shop", "slice-" + std::to_string(i)};
    s.address_type = below(8) == 0 ? "IPv6" : "IPv4";
    for (int n = below(4); n > 0; --n) {
      kube::SliceEndpoint e =
          at("10.64.0." + std::to_string(below(4)),
             static_cast<State>(below(4)),
             below(2) == 0 ? "edge-a" : "edge-b");
      e.zone_hints.assign(static_cast<std::size_t>(below(2)), "z" + std::to_string(below(2)));
      s.endpoints.push_back(std::move(e));
    }
    for (int n = below(3); n > 0; --n) {
      s.ports.push_back(
          {"p" + std::to_string(below(2)), below(2) == 0 ? "UDP" : "", 80 + below(2)});
    }
    slices.push_back(std::make_shared<const kube::EndpointSlice>(std::move(s)));
  }
  return slices;
}

TEST_CASE("the order in which slices are given does not matter") {
  std::mt19937 engine(1);
  for (int i = 0; i < 3000; ++i) {
    Slices slices = any_slices(engine);
    const ServiceEndpoints once = merge(slices);
    std::shuffle(slices.begin(), slices.end(), engine);
    REQUIRE(merge(slices) == once);

    for (const PortEndpoints& port : once.ports) {
      REQUIRE_FALSE(port.endpoints.empty());
      REQUIRE(find(once, port.port, port.protocol) == &port);
      REQUIRE(std::is_sorted(
          port.endpoints.begin(), port.endpoints.end(), [](const auto& a, const auto& b) {
            return a.address <= b.address;
          }));
    }
  }
}

TEST_CASE("an address that lives in some slice is never merged to a terminating one") {
  std::mt19937 engine(2);
  for (int i = 0; i < 3000; ++i) {
    const Slices slices = any_slices(engine);
    const ServiceEndpoints all = merge(slices);
    for (const SlicePtr& one : slices) {
      for (const PortEndpoints& port : merge({one}).ports) {
        const PortEndpoints* whole = find(all, port.port, port.protocol);
        REQUIRE(whole != nullptr);
        for (const Endpoint& e : port.endpoints) {
          const auto kept = std::find_if(
              whole->endpoints.begin(), whole->endpoints.end(), [&](const Endpoint& other) {
                return other.address == e.address;
              });
          REQUIRE(kept != whole->endpoints.end());
          REQUIRE((e.terminating || !kept->terminating));
        }
      }
    }
  }
}

}  // namespace
}  // namespace shunt::model
