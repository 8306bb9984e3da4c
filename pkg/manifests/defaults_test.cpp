#include "manifests/defaults.h"

#include <catch2/catch_test_macros.hpp>

namespace shunt::manifests {
namespace {

using Texts = std::vector<std::string>;

kube::Service service(const std::string& cluster_ip = "10.96.0.1") {
  kube::Service out;
  out.meta.key.name = "web";
  out.cluster_ip = cluster_ip;
  out.ports = {{"", "", 80, 0}};
  return out;
}
kube::Service with_defaults(kube::Service one) {
  apply_defaults(one);
  return one;
}

TEST_CASE("a Service as people write it gets what the API server would add") {
  const kube::Service got = with_defaults(service());
  CHECK(got.meta.key == kube::ObjectKey{"default", "web"});
  CHECK(got.type == "ClusterIP");
  CHECK(got.cluster_ips == Texts{"10.96.0.1"});
  CHECK(got.ip_families == Texts{"IPv4"});
  CHECK(got.session_affinity == "None");
  CHECK_FALSE(got.client_ip_timeout_seconds);
  CHECK(got.internal_traffic_policy == "Cluster");
  CHECK(got.external_traffic_policy.empty());
  CHECK(got.ports[0].protocol == "TCP");
  CHECK(lacks_of(got).empty());
  CHECK(with_defaults(got) == got);
}

TEST_CASE("what a Service says stays") {
  kube::Service one = service();
  one.meta.key.name_space = "shop";
  one.type = "NodePort";
  one.ip_families = {"IPv4"};
  one.cluster_ips = {"10.96.0.1"};
  one.session_affinity = "ClientIP";
  one.client_ip_timeout_seconds = 5;
  one.internal_traffic_policy = "Local";
  one.external_traffic_policy = "Local";
  one.ports = {{"x", "UDP", 80, 30080}};
  one.ingress = {{"192.0.2.1", "Proxy"}};
  CHECK(with_defaults(one) == one);
  CHECK(lacks_of(one).empty());
}

TEST_CASE("affinity by client lasts three hours") {
  kube::Service one = service();
  one.session_affinity = "ClientIP";
  CHECK(with_defaults(one).client_ip_timeout_seconds == 10800);
}

TEST_CASE("the policy for traffic from outside has a default where there is such traffic") {
  for (const char* type : {"NodePort", "LoadBalancer"}) {
    kube::Service one = service();
    one.type = type;
    CHECK(with_defaults(one).external_traffic_policy == "Cluster");
  }
  kube::Service one = service();
  one.external_ips = {"192.0.2.1"};
  CHECK(with_defaults(one).external_traffic_policy == "Cluster");
}

TEST_CASE("families follow from the addresses") {
  CHECK(with_defaults(service("fd00::1")).ip_families == Texts{"IPv6"});
  kube::Service dual = service("");
  dual.cluster_ips = {"fd00::1", "10.96.0.1"};
  const kube::Service got = with_defaults(dual);
  CHECK(got.cluster_ip == "fd00::1");
  CHECK(got.ip_families == Texts{"IPv6", "IPv4"});
  CHECK(with_defaults(service("nonsense")).ip_families.empty());
  CHECK(with_defaults(service("None")).ip_families.empty());
}

TEST_CASE("a balancer's address is a VIP unless it says otherwise") {
  kube::Service one = service();
  one.ingress = {{"192.0.2.1", std::nullopt}, {"", std::nullopt}};
  const kube::Service got = with_defaults(one);
  CHECK(got.ingress[0].ip_mode == "VIP");
  CHECK_FALSE(got.ingress[1].ip_mode);
}

TEST_CASE("a Service without a ClusterIP is set aside, unless it wants none") {
  const auto set_aside = [](const kube::Service& one) {
    const auto lacks = lacks_of(with_defaults(one));
    return !lacks.empty() && lacks[0].set_aside;
  };
  kube::Service one = service("");
  one.type = "NodePort";
  one.external_ips = {"192.0.2.1"};
  CHECK(set_aside(one));
  CHECK(lacks_of(with_defaults(one))[0].what.starts_with("spec.clusterIP is not given"));
  CHECK_FALSE(set_aside(service("None")));
  one.type = "ExternalName";
  CHECK_FALSE(set_aside(one));
}

TEST_CASE("a node port that nobody chose is told of") {
  kube::Service one = service();
  one.type = "LoadBalancer";
  const auto lacks = lacks_of(with_defaults(one));
  REQUIRE(lacks.size() == 1);
  CHECK_FALSE(lacks[0].set_aside);
}

TEST_CASE("ports of a slice are TCP and unnamed unless they say otherwise") {
  kube::EndpointSlice slice;
  slice.meta.key.name = "web-1";
  slice.service_name = "web";
  slice.address_type = "IPv4";
  slice.ports = {{std::nullopt, "", 8080}, {"dns", "UDP", 53}};
  apply_defaults(slice);
  CHECK(slice.meta.key.name_space == "default");
  CHECK(slice.ports == std::vector<kube::SlicePort>{{"", "TCP", 8080}, {"dns", "UDP", 53}});
  CHECK(lacks_of(slice).empty());
  slice.service_name = "";
  slice.address_type = "";
  CHECK(lacks_of(slice).size() == 2);
}

TEST_CASE("a name must be one: keys are made of it") {
  kube::Service one = with_defaults(service());
  for (const char* name : {"", "a/b", "A", "a b", "a\n"}) {
    CAPTURE(name);
    one.meta.key.name = name;
    REQUIRE(lacks_of(one).size() == 1);
    CHECK(lacks_of(one)[0].set_aside);
  }
  kube::Node node;
  node.meta.key = {"shop", "node-1"};
  apply_defaults(node);
  CHECK(node.meta.key == kube::ObjectKey{"", "node-1"});
  CHECK(lacks_of(node).empty());
}

}  // namespace
}  // namespace shunt::manifests
