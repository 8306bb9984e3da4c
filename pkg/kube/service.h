// core/v1 Service: the fields that a node proxy reads (spec/api-objects.md §3), as the API writes
// them. Strings that are enumerations in the API stay strings, so that a value we do not know
// survives; the model gives them meaning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kube/object_key.h"

namespace shunt::kube {

struct ServicePortSpec {
  std::string name;      // "" is allowed when the Service has one port
  std::string protocol;  // "" means TCP
  std::int32_t port = 0;
  std::int32_t node_port = 0;  // 0: none
  bool operator==(const ServicePortSpec&) const = default;
};

// One entry of status.loadBalancer.ingress.
struct LoadBalancerIngress {
  std::string ip;
  std::optional<std::string> ip_mode;
  bool operator==(const LoadBalancerIngress&) const = default;
};

struct Service {
  ObjectMeta meta;
  // Labels that take a Service out of our hands; the selectors already keep such Services away,
  // except in tests and with manifests read from files.
  bool has_proxy_name_label = false;  // service.kubernetes.io/service-proxy-name

  std::string type;        // "" means ClusterIP
  std::string cluster_ip;  // "" and "None": nothing to proxy
  std::vector<std::string> cluster_ips;
  std::vector<std::string> ip_families;  // parallel to cluster_ips
  std::vector<std::string> external_ips;
  std::vector<std::string> load_balancer_source_ranges;
  std::string session_affinity;
  std::optional<std::int32_t> client_ip_timeout_seconds;
  std::string external_traffic_policy;
  std::optional<std::string> internal_traffic_policy;
  std::int32_t health_check_node_port = 0;
  std::vector<ServicePortSpec> ports;
  std::vector<LoadBalancerIngress> ingress;

  // Our own annotations (backend/ipvs/ANNOTATIONS.md), as they were written; "" when absent. No
  // longer than a byte more than what is read of them, which tells that they were.
  std::string ipvs_scheduler;
  std::string ipvs_weights;

  bool operator==(const Service&) const = default;
};

inline constexpr char kServiceProxyNameLabel[] = "service.kubernetes.io/service-proxy-name";
inline constexpr char kIpvsSchedulerAnnotation[] = "kube-shunt.io/ipvs-scheduler";
inline constexpr char kIpvsWeightsAnnotation[] = "kube-shunt.io/ipvs-weights";
inline constexpr std::size_t kMaxIpvsScheduler = 64;
inline constexpr std::size_t kMaxIpvsWeights = 8192;

}  // namespace shunt::kube
