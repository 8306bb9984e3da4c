// A Service and its slices, seen from this node -> the frontends it claims in one address family:
// its ClusterIP, its externalIPs and balancer addresses, and its NodePorts (spec/semantics.md §6).
// Pure.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "desired/desired_state.h"
#include "kube/endpoint_slice.h"
#include "kube/service.h"
#include "net/ip_address.h"
#include "topology/categorize.h"

namespace shunt::desired {

// What a plan depends on besides the Service.
struct NodeView {
  topology::NodeTopology topology;
  // The node's own address of the family: a source range that contains it admits the balancer
  // addresses as sources too (spec/semantics.md §3).
  std::optional<net::IpAddress> ip;
  bool external_ips = true;  // false: externalIPs serve nobody (gate AllowServiceExternalIPs)
};

// What balancers ask this node about a Service with a healthCheckNodePort (spec/semantics.md §11).
struct HealthCheck {
  net::Port port{};
  std::size_t local_endpoints = 0;  // distinct addresses of ready endpoints on this node
  bool operator==(const HealthCheck&) const = default;
};

struct ServicePlan {
  Seniority seniority;
  std::vector<Claim> claims;
  std::vector<std::string> issues;  // values of the objects that were set aside, a sentence each
  // Ports with policy Local that have endpoints, none of them here (spec/conntrack-and-metrics.md
  // §2).
  std::size_t internal_without_local = 0;
  std::size_t external_without_local = 0;
  std::optional<HealthCheck> health_check;  // nothing: the Service has none in this family
};

// `service` may be null: its slices alone plan nothing.
ServicePlan plan_service(
    const kube::Service* service,
    std::span<const std::shared_ptr<const kube::EndpointSlice>> slices,
    net::Family family,
    const NodeView& node);

}  // namespace shunt::desired
