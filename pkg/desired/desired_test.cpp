#include <catch2/catch_test_macros.hpp>
#include <map>
#include <optional>

#include "desired/desired_state.h"
#include "desired/planner.h"

namespace shunt::desired {
namespace {

FrontendKey key(const char* ip) { return {*net::parse_ip(ip), net::Protocol::Tcp, net::Port{80}}; }

Claim claim(const char* ip, const std::string& name) {
  FrontendPlan plan;
  plan.service = name;
  return {key(ip), std::make_shared<const FrontendPlan>(plan)};
}

struct Fixture {
  DesiredState state;
  std::vector<FrontendKey> touched;
  std::vector<Conflict> conflicts;
  void set(const std::string& name, std::vector<Claim> claims, std::int64_t created = 1) {
    touched.clear();
    conflicts.clear();
    state.set_service(
        {"ns", name}, {created, "uid-" + name}, std::move(claims), touched, conflicts);
  }
  std::string owner(const char* ip) const {
    const FrontendPlan* plan = state.find(key(ip));
    return plan == nullptr ? "nobody" : plan->service;
  }
};

TEST_CASE("only frontends whose plan changed are touched") {
  Fixture f;
  f.set("a", {claim("10.96.0.1", "a"), claim("10.96.0.2", "a")});
  CHECK(f.touched == std::vector{key("10.96.0.1"), key("10.96.0.2")});
  f.set("a", {claim("10.96.0.1", "a"), claim("10.96.0.2", "a")});
  CHECK(f.touched.empty());
  f.set("a", {claim("10.96.0.2", "a")});
  CHECK(f.touched == std::vector{key("10.96.0.1")});
  CHECK(f.owner("10.96.0.1") == "nobody");
}

TEST_CASE("the older of two claimants has a frontend, whatever the order of arrival") {
  for (const bool older_first : {true, false}) {
    Fixture f;
    f.set(
        older_first ? "old" : "new",
        {claim("10.96.0.1", older_first ? "old" : "new")},
        older_first ? 1 : 2);
    f.set(
        older_first ? "new" : "old",
        {claim("10.96.0.1", older_first ? "new" : "old")},
        older_first ? 2 : 1);
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
    const ServicePlan planned = plan_service(&s, list, net::Family::IPv4, {node, {}});
    REQUIRE(planned.claims.size() == 1);
    return *planned.claims[0].plan;
  };
  SECTION("ready endpoints are balanced") {
    const auto got = plan(
        service(),
        slices(
            {endpoint("10.64.0.1", "here"),
             endpoint("10.64.1.1", "there"),
             endpoint("10.64.0.2", "here", false)}));
    CHECK(got.fate == Fate::Balance);
    CHECK(got.service == "shop/web:http");
    CHECK(got.endpoints->size() == 2);
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

// A LoadBalancer with everything: balancer address, externalIP, NodePort.
kube::Service balancer(const char* external_policy) {
  kube::Service s = service();
  s.type = "LoadBalancer";
  s.external_traffic_policy = external_policy;
  s.external_ips = {"203.0.113.9"};
  s.ingress = {{"192.0.2.4", std::nullopt}};
  s.ports[0].node_port = 30080;
  return s;
}

using Plans = std::map<FrontendKey, std::shared_ptr<const FrontendPlan>>;
Plans plans_of(
    const kube::Service& s, const auto& list, std::optional<net::IpAddress> node_ip = {}) {
  Plans out;
  for (const Claim& c : plan_service(&s, list, net::Family::IPv4, {{"here", ""}, node_ip}).claims) {
    out.emplace(c.key, c.plan);
  }
  return out;
}
FrontendKey node_port() {
  return node_port_key(net::Family::IPv4, net::Protocol::Tcp, net::Port{30080});
}

TEST_CASE("every address and the NodePort of a Service is a frontend with the policy it follows") {
  const auto here_and_there =
      slices({endpoint("10.64.0.1", "here"), endpoint("10.64.1.1", "there")});
  SECTION("policy Cluster: all endpoints, masqueraded") {
    const Plans plans = plans_of(balancer("Cluster"), here_and_there);
    REQUIRE(plans.size() == 4);
    CHECK(plans.at(key("10.96.0.1"))->reach == Reach::Internal);
    for (const FrontendKey& external : {key("192.0.2.4"), key("203.0.113.9"), node_port()}) {
      const FrontendPlan& plan = *plans.at(external);
      CHECK(plan.reach == Reach::External);
      CHECK(plan.endpoints->size() == 2);
      CHECK_FALSE(plan.local_endpoints);
    }
  }
  SECTION("policy Local: outsiders get the endpoints of this node") {
    const FrontendPlan plan = *plans_of(balancer("Local"), here_and_there).at(node_port());
    CHECK(plan.reach == Reach::ExternalLocal);
    CHECK(plan.fate == Fate::Balance);
    CHECK(plan.endpoints->size() == 2);
    CHECK(plan.local_endpoints->size() == 1);
  }
  SECTION("policy Local and nobody here: outsiders are dropped, pods go elsewhere") {
    const auto plans = plans_of(balancer("Local"), slices({endpoint("10.64.1.1", "there")}));
    const FrontendPlan& plan = *plans.at(key("192.0.2.4"));
    CHECK(plan.fate == Fate::Drop);
    CHECK(plan.endpoints->size() == 1);
    CHECK_FALSE(plan.local_endpoints);
    CHECK(plans.at(key("10.96.0.1"))->fate == Fate::Balance);
  }
  SECTION("nobody anywhere: refused") {
    CHECK(plans_of(balancer("Local"), slices({})).at(node_port())->fate == Fate::Refuse);
  }
}

TEST_CASE("source ranges are the balancer address's") {
  kube::Service s = balancer("Cluster");
  s.load_balancer_source_ranges = {"198.51.100.0/25"};
  const auto list = slices({endpoint("10.64.0.1", "here")});
  Plans plans = plans_of(s, list);
  REQUIRE(plans.at(key("192.0.2.4"))->sources);
  CHECK(plans.at(key("192.0.2.4"))->sources->size() == 1);
  CHECK_FALSE(plans.at(key("203.0.113.9"))->sources);
  CHECK_FALSE(plans.at(node_port())->sources);

  SECTION("an externalIP that is the balancer address too stays restricted") {
    s.external_ips = {"192.0.2.4"};
    CHECK(plans_of(s, list).at(key("192.0.2.4"))->sources);
  }
  SECTION("a node that is inside admits the balancer address as a source") {
    plans = plans_of(s, list, net::parse_ip("198.51.100.3"));
    CHECK(
        *plans.at(key("192.0.2.4"))->sources ==
        std::vector{*net::parse_cidr("192.0.2.4/32"), *net::parse_cidr("198.51.100.0/25")});
  }
}

TEST_CASE("affinity is kept under the ClusterIP, and policy Local's choices apart") {
  kube::Service s = balancer("Local");
  s.session_affinity = "ClientIP";
  s.client_ip_timeout_seconds = 600;
  const auto list = slices({endpoint("10.64.0.1", "here"), endpoint("10.64.1.1", "there")});
  for (const auto& [frontend, plan] : plans_of(s, list)) {
    REQUIRE(plan->affinity);
    CHECK(plan->affinity->group == key("10.96.0.1"));
    CHECK(plan->affinity->timeout == std::chrono::seconds(600));
    CHECK(plan->affinity->cluster_memory);
    CHECK(plan->affinity->local_memory);
    CHECK_FALSE(plan->affinity->local_policy);
  }
  kube::Service internal = service("Local");
  internal.session_affinity = "ClientIP";
  internal.client_ip_timeout_seconds = 600;
  const auto plans = plans_of(internal, list);
  const Affinity affinity = plans.at(key("10.96.0.1"))->affinity.value();
  CHECK(affinity.local_policy);
  CHECK(affinity.local_memory);
  CHECK_FALSE(affinity.cluster_memory);
}

TEST_CASE("0.0.0.0 as an externalIP is set aside, it would be every NodePort") {
  kube::Service s = balancer("Cluster");
  s.external_ips = {"0.0.0.0"};
  const ServicePlan planned = plan_service(&s, slices({}), net::Family::IPv4, {{"here", ""}, {}});
  CHECK(planned.claims.size() == 3);
  CHECK(planned.issues.size() == 1);
}

TEST_CASE("a number that two ports of a Service have is the first one's, and that is said") {
  kube::Service s = service("Cluster");
  s.type = "NodePort";
  s.ports = {{"a", "TCP", 80, 30080}, {"b", "TCP", 80, 30081}, {"c", "TCP", 81, 30080}};
  s.ports.push_back({"d", "UDP", 80, 30080});  // another protocol is another frontend
  const ServicePlan planned = plan_service(&s, slices({}), net::Family::IPv4, {{"here", ""}, {}});
  CHECK(
      planned.issues ==
      std::vector<std::string>{
          "*:30080/TCP is given twice, shop/web:a has it and shop/web:c does not",
          "10.96.0.1:80/TCP is given twice, shop/web:a has it and shop/web:b does not"});
}

TEST_CASE("an address that a Service has in two ways is not given twice") {
  kube::Service s = balancer("Cluster");
  s.ports = {{"a", "TCP", 80, 30080}, {"b", "TCP", 81, 30081}};
  s.external_ips = {s.ingress.front().ip};
  CHECK(plan_service(&s, slices({}), net::Family::IPv4, {{"here", ""}, {}}).issues.empty());
}

// Weights as text, "10.64.0.1:8080=3", after the scheduler.
std::string wishes(const FrontendPlan& plan) {
  if (!plan.ipvs) {
    return "none";
  }
  std::string out = plan.ipvs->scheduler;
  for (const auto& [endpoint, weight] : plan.ipvs->weights) {
    out.append(" ").append(net::to_string(endpoint)).append("=").append(std::to_string(weight));
  }
  return out;
}

TEST_CASE("what annotations ask of IPVS is in the plans of the frontends that it concerns") {
  const auto list = slices({endpoint("10.64.0.1", "here"), endpoint("10.64.1.1", "there")});
  kube::Service s = balancer("Local");
  const auto all = [&] {
    std::map<FrontendKey, std::string> out;
    for (const auto& [frontend, plan] : plans_of(s, list)) {
      out.emplace(frontend, wishes(*plan));
    }
    return out;
  };
  const auto each = [&](const std::string& internal, const std::string& external) {
    return std::map<FrontendKey, std::string>{
        {key("10.96.0.1"), internal},
        {key("192.0.2.4"), external},
        {key("203.0.113.9"), external},
        {node_port(), external}};
  };
  CHECK(all() == each("none", "none"));
  s.ipvs_scheduler = "mh";
  CHECK(all() == each("mh", "mh"));
  s.ipvs_scheduler = "best";
  CHECK(all() == each("none", "none"));
  s.ipvs_weights = "node:there=0, local=3";
  CHECK(all() == each(" 10.64.0.1:8080=3 10.64.1.1:8080=0", " 10.64.0.1:8080=3 10.64.1.1:8080=0"));
  SECTION("weights of endpoints that a frontend does not use are not its") {
    s.internal_traffic_policy = "Local";
    CHECK(all() == each(" 10.64.0.1:8080=3", " 10.64.0.1:8080=3 10.64.1.1:8080=0"));
    s.ipvs_weights = "node:there=0";
    CHECK(all() == each("none", " 10.64.1.1:8080=0"));
  }
  SECTION("a weight of 1, or of somebody else, is nothing special") {
    s.ipvs_weights = "*=1, node:elsewhere=7, zone:a=3";
    CHECK(all() == each("none", "none"));
  }
  SECTION("what cannot be read is told") {
    s.ipvs_weights = "there=0";
    s.health_check_node_port = 32000;
    const auto planned = plan_service(&s, list, net::Family::IPv4, {{"here", ""}, {}});
    CHECK(planned.issues.size() == 2);
  }
}

TEST_CASE("an annotation that changes alone touches the frontends, and only then") {
  const auto list = slices({endpoint("10.64.0.1", "here")});
  DesiredState state;
  const auto touched_by = [&](const char* scheduler, const char* weights) {
    kube::Service s = balancer("Cluster");
    s.ipvs_scheduler = scheduler;
    s.ipvs_weights = weights;
    ServicePlan planned = plan_service(&s, list, net::Family::IPv4, {{"here", ""}, {}});
    std::vector<FrontendKey> touched;
    std::vector<Conflict> conflicts;
    state.set_service(s.meta.key, planned.seniority, std::move(planned.claims), touched, conflicts);
    return touched.size();
  };
  CHECK(touched_by("", "") == 4);
  CHECK(touched_by("", "*=1") == 0);
  CHECK(touched_by("sh", "*=1") == 4);
  CHECK(touched_by("sh", "*=1,zone:x=5") == 0);
  CHECK(touched_by("sh", "*=2") == 4);
  CHECK(touched_by("sh", "local=2") == 0);  // the same weight for another reason
  CHECK(touched_by("", "") == 4);
}

TEST_CASE("tracked UDP flows are judged by who serves, ready or not") {
  kube::Service s = service();
  s.ports[0].protocol = "UDP";
  auto endpoints = slices(
      {endpoint("10.64.0.1", "here"),
       endpoint("10.64.0.2", "here", false),
       endpoint("10.64.0.3", "here", false)});
  auto slice = std::make_shared<kube::EndpointSlice>(*endpoints[0]);
  slice->ports[0].protocol = "UDP";
  slice->endpoints[1].terminating = true;
  slice->endpoints[2].serving = false;
  const auto planned = plan_service(
      &s,
      std::vector<std::shared_ptr<const kube::EndpointSlice>>{slice},
      net::Family::IPv4,
      {{"here", ""}, {}});
  REQUIRE(planned.claims.size() == 1);
  CHECK(planned.claims[0].plan->endpoints->size() == 1);
  CHECK(planned.claims[0].plan->serving->size() == 2);
}

std::optional<HealthCheck> health_check_of(const kube::Service& s, const auto& list) {
  return plan_service(&s, list, net::Family::IPv4, {{"here", ""}, {}}).health_check;
}

TEST_CASE("a health check counts the addresses that are ready here, each once") {
  kube::Service s = balancer("Local");
  s.health_check_node_port = 32000;
  auto two_ports = std::make_shared<kube::EndpointSlice>(
      *slices({endpoint("10.64.0.1", "here"), endpoint("10.64.1.1", "there")})[0]);
  two_ports->ports.push_back({"https", "TCP", 8443});
  const std::vector<std::shared_ptr<const kube::EndpointSlice>> list{two_ports};
  CHECK(health_check_of(s, list) == HealthCheck{net::Port{32000}, 1});
  CHECK(
      health_check_of(s, slices({endpoint("10.64.0.1", "here", false)})) ==
      HealthCheck{net::Port{32000}, 0});

  SECTION("only where policy Local decides, for balancers, in families that the Service has") {
    s.external_traffic_policy = "Cluster";
    CHECK_FALSE(health_check_of(s, list));
    s.external_traffic_policy = "Local";
    s.type = "NodePort";
    CHECK_FALSE(health_check_of(s, list));
    s.type = "LoadBalancer";
    CHECK_FALSE(plan_service(&s, list, net::Family::IPv6, {{"here", ""}, {}}).health_check);
    s.ports.clear();
    CHECK_FALSE(health_check_of(s, list));
  }
}

TEST_CASE("slices without their Service plan nothing") {
  CHECK(plan_service(
            nullptr, slices({endpoint("10.64.0.1", "here")}), net::Family::IPv4, {{"here", ""}, {}})
            .claims.empty());
}

}  // namespace
}  // namespace shunt::desired
