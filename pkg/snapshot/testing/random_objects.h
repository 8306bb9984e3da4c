// Objects with every field set to something, or to nothing.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "kube/endpoint_slice.h"
#include "kube/node.h"
#include "kube/service.h"

namespace shunt::snapshot::testing {

class RandomObjects {
 public:
  explicit RandomObjects(unsigned seed) : random_(seed) {}

  kube::Service service() {
    kube::Service s;
    s.meta = meta();
    s.has_proxy_name_label = coin();
    s.type = text();
    s.cluster_ip = text();
    s.cluster_ips = texts();
    s.ip_families = texts();
    s.external_ips = texts();
    s.load_balancer_source_ranges = texts();
    s.session_affinity = text();
    if (coin()) {
      s.client_ip_timeout_seconds = number();
    }
    s.external_traffic_policy = text();
    if (coin()) {
      s.internal_traffic_policy = text();
    }
    s.health_check_node_port = number();
    s.ports.resize(below(4));
    for (auto& port : s.ports) {
      port = {text(), text(), number(), number()};
    }
    s.ingress.resize(below(3));
    for (auto& ingress : s.ingress) {
      ingress.ip = text();
      if (coin()) {
        ingress.ip_mode = text();
      }
    }
    s.ipvs_scheduler = text();
    s.ipvs_weights = text();
    return s;
  }

  kube::EndpointSlice slice() {
    kube::EndpointSlice s;
    s.meta = meta();
    s.service_name = text();
    s.has_headless_label = coin();
    s.address_type = coin() ? "IPv4" : "IPv6";
    s.trigger_time_ns = wide();
    s.endpoints.resize(below(12));
    for (auto& endpoint : s.endpoints) {
      if (coin()) {
        endpoint.address = address();
      }
      endpoint.ready = coin();
      endpoint.serving = coin();
      endpoint.terminating = coin();
      endpoint.node_name = text();
      endpoint.zone_hints = texts();
      endpoint.node_hints = texts();
      endpoint.zone = text();
    }
    s.ports.resize(below(4));
    for (auto& port : s.ports) {
      if (coin()) {
        port.name = text();
      }
      port.protocol = text();
      port.port = number();
    }
    return s;
  }

  kube::Node node() {
    kube::Node n;
    n.meta = meta();
    if (coin()) {
      n.zone = text();
    }
    n.deleting = coin();
    n.pod_cidrs = texts();
    n.taint_keys = texts();
    n.addresses.resize(below(4));
    for (auto& one : n.addresses) {
      one = {text(), text()};
    }
    return n;
  }

  kube::ServiceCidr service_cidr() {
    kube::ServiceCidr c;
    c.meta = meta();
    c.cidrs = texts();
    return c;
  }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  bool coin() { return below(2) == 0; }
  std::int64_t wide() { return static_cast<std::int64_t>(random_()) >> below(64); }
  std::int32_t number() { return static_cast<std::int32_t>(wide()); }

  std::string text() {
    switch (below(4)) {
      case 0:
        return "";
      case 1:
        return "node-" + std::to_string(below(20));
      case 2:
        return "10.0.0." + std::to_string(below(256));
      default:
        break;
    }
    std::string out(below(600), '\0');
    for (char& c : out) {
      c = static_cast<char>(random_());
    }
    return out;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> out(below(3));
    for (std::string& one : out) {
      one = text();
    }
    return out;
  }
  net::IpAddress address() {
    net::IpAddress ip{coin() ? net::Family::IPv4 : net::Family::IPv6, {}};
    for (std::size_t i = 0; i < ip.size(); ++i) {
      ip.bytes[i] = static_cast<std::uint8_t>(random_());
    }
    return ip;
  }
  kube::ObjectMeta meta() { return {{text(), text()}, text(), text(), wide()}; }

  std::mt19937_64 random_;
};

}  // namespace shunt::snapshot::testing
