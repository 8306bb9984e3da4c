#include "model/service_port.h"

#include <catch2/catch_test_macros.hpp>

namespace shunt::model {
namespace {

using Texts = std::vector<std::string>;

kube::Service web() {
  kube::Service s;
  s.meta.key = {"shop", "web"};
  s.type = "ClusterIP";
  s.cluster_ip = "10.112.0.1";
  s.ports = {{"http", "TCP", 80, 0}};
  return s;
}

ServicePort only_port(const kube::Service& s, net::Family family = net::Family::IPv4) {
  const ServicePorts got = service_ports(s, family);
  REQUIRE(got.ports.size() == 1);
  return got.ports.front();
}

template <typename T>
Texts texts(const std::vector<T>& values) {
  Texts out;
  for (const T& value : values) {
    out.push_back(net::to_string(value));
  }
  return out;
}

Texts port_names(const ServicePorts& ports) {
  Texts out;
  for (const ServicePort& p : ports.ports) {
    out.push_back(to_string(p.name));
  }
  return out;
}

TEST_CASE("a service port has two names") {
  const ServicePortName named{{"shop", "web"}, "http", net::Protocol::Udp};
  const ServicePortName unnamed{{"shop", "web"}, "", net::Protocol::Tcp};
  CHECK(to_string(named) == "shop/web:http/UDP");
  CHECK(display_name(named) == "shop/web:http");
  CHECK(to_string(unnamed) == "shop/web:/TCP");
  CHECK(display_name(unnamed) == "shop/web");
}

TEST_CASE("a Service without anything to proxy is skipped, with the first reason") {
  struct Case {
    const char* name;
    void (*make)(kube::Service&);
    Skip reason;
  };
  const Case cases[] = {
      {"headless", [](kube::Service& s) { s.cluster_ip = "None"; }, Skip::Headless},
      {"no cluster IP yet", [](kube::Service& s) { s.cluster_ip = ""; }, Skip::NoClusterIp},
      {"alias with a stray cluster IP",
       [](kube::Service& s) { s.type = "ExternalName"; },
       Skip::ExternalName},
      {"alias without one",
       [](kube::Service& s) {
         s.type = "ExternalName";
         s.cluster_ip = "";
       },
       Skip::NoClusterIp},
      {"another proxy's",
       [](kube::Service& s) { s.has_proxy_name_label = true; },
       Skip::OtherProxy},
      {"of the other family",
       [](kube::Service& s) { s.cluster_ip = "fdc0::1"; },
       Skip::NoAddressInFamily},
      {"family listed, address still missing",
       [](kube::Service& s) {
         s.ip_families = {"IPv6", "IPv4"};
         s.cluster_ips = {"fdc0::1"};
       },
       Skip::NoAddressInFamily},
      {"address given, family not listed",
       [](kube::Service& s) {
         s.ip_families = {"IPv6"};
         s.cluster_ips = {"fdc0::1", "10.112.0.1"};
       },
       Skip::NoAddressInFamily},
      {"cluster IP that is no address",
       [](kube::Service& s) { s.cluster_ip = "10.112.0.300"; },
       Skip::NoAddressInFamily},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      kube::Service s = web();
      c.make(s);
      const ServicePorts got = service_ports(s, net::Family::IPv4);
      CHECK(got.ports.empty());
      CHECK(got.skipped == c.reason);
    }
  }
}

TEST_CASE("addresses of a dual-stack Service are split by family and made canonical") {
  kube::Service s = web();
  s.cluster_ips = {"FDC0::0001", "10.112.00.041"};
  s.ip_families = {"IPv6", "IPv4"};
  s.external_ips = {"203.0.113.022", "2001:db8:30::8", "", " ", "nonsense", "203.0.113.22"};
  s.ingress = {{"192.0.2.4", {}}, {"192.0.2.5", "VIP"}, {"192.0.2.6", "Proxy"}, {"", {}}};

  const ServicePort v4 = only_port(s);
  CHECK(net::to_string(v4.cluster_ip) == "10.112.0.41");
  CHECK(texts(v4.external_ips) == Texts{"203.0.113.22"});
  CHECK(texts(v4.load_balancer_vips) == Texts{"192.0.2.4", "192.0.2.5"});
  const ServicePort v6 = only_port(s, net::Family::IPv6);
  CHECK(net::to_string(v6.cluster_ip) == "fdc0::1");
  CHECK(texts(v6.external_ips) == Texts{"2001:db8:30::8"});
  CHECK(v6.load_balancer_vips.empty());
  CHECK(
      service_ports(s, net::Family::IPv4).issues ==
      Texts{"externalIPs: \"nonsense\" is no IP address"});
}

TEST_CASE("source ranges restrict only when a valid one of the family is left") {
  struct Case {
    const char* name;
    Texts given;
    Texts v4;
    Texts v6;
    std::size_t issues;
  };
  const Case cases[] = {
      {"none", {}, {}, {}, 0},
      {"blanks around", {" 198.51.100.0/28\t"}, {"198.51.100.0/28"}, {}, 0},
      {"host bits and leading zeros", {"203.0.113.070/026"}, {"203.0.113.64/26"}, {}, 0},
      {"everything empties its family only",
       {"10.0.0.0/8", "::/0", "fd00::/8"},
       {"10.0.0.0/8"},
       {},
       0},
      {"halves stay", {"0.0.0.0/1", "128.0.0.0/1"}, {"0.0.0.0/1", "128.0.0.0/1"}, {}, 0},
      {"given twice", {"10.0.0.0/8", "10.1.2.3/8"}, {"10.0.0.0/8"}, {}, 0},
      {"only nonsense: not restricted", {"", "10.0.0.0", "10.0.0.0/33"}, {}, {}, 2},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      kube::Service s = web();
      s.cluster_ips = {"10.112.0.1", "fdc0::1"};
      s.ip_families = {"IPv4", "IPv6"};
      s.load_balancer_source_ranges = c.given;
      CHECK(texts(only_port(s).source_ranges) == c.v4);
      CHECK(texts(only_port(s, net::Family::IPv6).source_ranges) == c.v6);
      CHECK(service_ports(s, net::Family::IPv4).issues.size() == c.issues);
    }
  }
}

TEST_CASE("client affinity lasts three hours unless the object says otherwise") {
  kube::Service s = web();
  CHECK_FALSE(only_port(s).affinity);
  s.session_affinity = "ClientIP";
  CHECK(only_port(s).affinity == std::chrono::hours(3));
  s.client_ip_timeout_seconds = 5;
  CHECK(only_port(s).affinity == std::chrono::seconds(5));
  s.client_ip_timeout_seconds = 0;
  CHECK(only_port(s).affinity == std::chrono::hours(3));
  CHECK(service_ports(s, net::Family::IPv4).issues.size() == 1);
  s.session_affinity = "None";
  CHECK_FALSE(only_port(s).affinity);
}

TEST_CASE("external policy Local counts where the type is reachable from outside") {
  struct Case {
    const char* type;
    Texts external_ips;
    bool external_local;
    bool uses_local;
  };
  const Case cases[] = {
      {"ClusterIP", {}, false, false},
      {"", {"203.0.113.2"}, true, true},
      {"ClusterIP", {"2001:db8:30::8"}, true, false},  // no external address in this family
      {"NodePort", {}, true, false},
      {"LoadBalancer", {}, true, false},
      {"LoadBalancer", {"203.0.113.2"}, true, true},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.type << " with " << c.external_ips.size() << " external addresses") {
      kube::Service s = web();
      s.type = c.type;
      s.external_ips = c.external_ips;
      s.external_traffic_policy = "Local";
      CHECK(only_port(s).external_local == c.external_local);
      CHECK(only_port(s).uses_local_endpoints() == c.uses_local);
      CHECK(only_port(s).uses_cluster_endpoints());
    }
  }
}

TEST_CASE("internal policy Local needs the cluster's endpoints only for outsiders") {
  kube::Service s = web();
  s.internal_traffic_policy = "Local";
  CHECK(only_port(s).internal_local);
  CHECK_FALSE(only_port(s).uses_cluster_endpoints());
  s.ports[0].node_port = 30080;
  CHECK(only_port(s).uses_cluster_endpoints());
  CHECK(only_port(s).uses_local_endpoints());
}

TEST_CASE("a health check port belongs to balancers with external policy Local") {
  kube::Service s = web();
  s.type = "LoadBalancer";
  s.external_traffic_policy = "Local";
  s.health_check_node_port = 30500;
  CHECK(number(only_port(s).health_check_node_port) == 30500);
  s.health_check_node_port = 0;
  CHECK(number(only_port(s).health_check_node_port) == 0);
  CHECK(service_ports(s, net::Family::IPv4).issues.size() == 1);
  s.health_check_node_port = 30500;
  s.external_traffic_policy = "Cluster";
  CHECK(number(only_port(s).health_check_node_port) == 0);
  s.type = "NodePort";
  s.external_traffic_policy = "Local";
  CHECK(number(only_port(s).health_check_node_port) == 0);
}

TEST_CASE("an odd port is set aside and harms no other") {
  kube::Service s = web();
  s.ports = {
      {"zero", "TCP", 0, 0},
      {"big", "TCP", 65536, 0},
      {"quic", "QUIC", 443, 0},
      {"plain", "", 80, 0},
      {"np", "UDP", 81, 70000},
  };
  const ServicePorts got = service_ports(s, net::Family::IPv4);
  CHECK(port_names(got) == Texts{"shop/web:np/UDP", "shop/web:plain/TCP"});
  CHECK(number(got.ports[0].node_port) == 0);
  CHECK(got.issues.size() == 4);
}

TEST_CASE("a later port of the same name and protocol replaces the earlier one") {
  kube::Service s = web();
  s.ports = {{"dns", "UDP", 53, 0}, {"dns", "TCP", 53, 0}, {"dns", "UDP", 5353, 0}};
  const ServicePorts got = service_ports(s, net::Family::IPv4);
  CHECK(port_names(got) == Texts{"shop/web:dns/TCP", "shop/web:dns/UDP"});
  CHECK(number(got.ports[1].port) == 5353);
}

TEST_CASE("a Service with a cluster IP and no ports is not skipped: it has none") {
  kube::Service s = web();
  s.ports.clear();
  CHECK(service_ports(s, net::Family::IPv4) == ServicePorts{});
}

}  // namespace
}  // namespace shunt::model
