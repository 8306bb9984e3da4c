#include <catch2/catch_test_macros.hpp>

#include "desired/desired_state.h"
#include "desired/planner.h"

namespace shunt::desired {
namespace {

FrontendKey key(const char* ip) { return {*net::parse_ip(ip), net::Protocol::Tcp, net::Port{80}}; }

Claim claim(const char* ip, std::int64_t created, const std::string& name) {
  FrontendPlan plan;
  plan.service = name;
  return {key(ip), {created, "uid-" + name, name}, std::make_shared<const FrontendPlan>(plan)};
}

struct Fixture {
  DesiredState state;
  std::vector<FrontendKey> touched;
  std::vector<Conflict> conflicts;
  void set(const std::string& name, std::vector<Claim> claims) {
    touched.clear();
    conflicts.clear();
    state.set_service({"ns", name}, std::move(claims), touched, conflicts);
  }
  std::string owner(const char* ip) const {
    const FrontendPlan* plan = state.find(key(ip));
    return plan == nullptr ? "nobody" : plan->service;
  }
};

TEST_CASE("only frontends whose plan changed are touched") {
  Fixture f;
  f.set("a", {claim("10.96.0.1", 1, "a"), claim("10.96.0.2", 1, "a")});
  CHECK(f.touched == std::vector{key("10.96.0.1"), key("10.96.0.2")});
  f.set("a", {claim("10.96.0.1", 1, "a"), claim("10.96.0.2", 1, "a")});
  CHECK(f.touched.empty());
  f.set("a", {claim("10.96.0.2", 1, "a")});
  CHECK(f.touched == std::vector{key("10.96.0.1")});
  CHECK(f.owner("10.96.0.1") == "nobody");
}

TEST_CASE("the older of two claimants has a frontend, whatever the order of arrival") {
  for (const bool older_first : {true, false}) {
    Fixture f;
    f.set(
        older_first ? "old" : "new",
        {claim("10.96.0.1", older_first ? 1 : 2, older_first ? "old" : "new")});
    f.set(
        older_first ? "new" : "old",
        {claim("10.96.0.1", older_first ? 2 : 1, older_first ? "new" : "old")});
    CHECK(f.owner("10.96.0.1") == "old");
    REQUIRE(f.conflicts.size() == 1);
    CHECK(f.conflicts[0].winner == "old");
    CHECK(f.conflicts[0].loser == "new");
    CHECK(f.touched.empty() == older_first);
    CHECK(f.state.conflicts() == 1);

    f.set("old", {});
    CHECK(f.owner("10.96.0.1") == "new");
    CHECK(f.touched == std::vector{key("10.96.0.1")});
    CHECK(f.state.conflicts() == 0);
  }
}

kube::Service service(const char* policy = "Cluster") {
  kube::Service s;
  s.meta.key = {"shop", "web"};
  s.cluster_ip = "10.96.0.1";
  s.cluster_ips = {"10.96.0.1"};
  s.ip_families = {"IPv4"};
  s.internal_traffic_policy = policy;
  s.ports = {{"http", "TCP", 80, 0}};
  return s;
}

std::vector<std::shared_ptr<const kube::EndpointSlice>> slices(
    std::vector<kube::SliceEndpoint> endpoints) {
  auto slice = std::make_shared<kube::EndpointSlice>();
  slice->meta.key = {"shop", "web-1"};
  slice->service_name = "web";
  slice->address_type = "IPv4";
  slice->endpoints = std::move(endpoints);
  slice->ports = {{"http", "TCP", 8080}};
  return {slice};
}

kube::SliceEndpoint endpoint(const char* ip, const char* node, bool ready = true) {
  kube::SliceEndpoint e;
  e.address = net::parse_ip(ip);
  e.node_name = node;
  e.ready = ready;
  return e;
}

TEST_CASE("a plan says what happens to the packets of a ClusterIP") {
  const topology::NodeTopology node{"here", ""};
  const auto plan = [&](const kube::Service& s, const auto& list) {
    const ServicePlan planned = plan_service(&s, list, net::Family::IPv4, node);
    REQUIRE(planned.claims.size() == 1);
    return *planned.claims[0].plan;
  };
  SECTION("ready endpoints are balanced, those of this node may hairpin") {
    const auto got = plan(
        service(),
        slices(
            {endpoint("10.64.0.1", "here"),
             endpoint("10.64.1.1", "there"),
             endpoint("10.64.0.2", "here", false)}));
    CHECK(got.fate == Fate::Balance);
    CHECK(got.service == "shop/web:http");
    CHECK(got.endpoints->size() == 2);
    REQUIRE(got.hairpin);
    CHECK(got.hairpin->size() == 1);
  }
  SECTION("nobody could serve: refuse") {
    CHECK(plan(service(), slices({})).fate == Fate::Refuse);
    CHECK(
        plan(service("Local"), slices({endpoint("10.64.0.1", "here", false)})).fate ==
        Fate::Refuse);
  }
  SECTION("somebody could, but not here: drop") {
    CHECK(plan(service("Local"), slices({endpoint("10.64.1.1", "there")})).fate == Fate::Drop);
  }
  SECTION("policy Local uses this node's endpoints") {
    const auto got = plan(
        service("Local"), slices({endpoint("10.64.0.1", "here"), endpoint("10.64.1.1", "there")}));
    CHECK(got.endpoints->size() == 1);
  }
}

TEST_CASE("slices without their Service plan nothing") {
  CHECK(plan_service(
            nullptr, slices({endpoint("10.64.0.1", "here")}), net::Family::IPv4, {"here", ""})
            .claims.empty());
}

}  // namespace
}  // namespace shunt::desired
