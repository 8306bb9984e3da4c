// core/v1 Node and networking.k8s.io/v1 ServiceCIDR: the fields that a node proxy reads
// (spec/api-objects.md §5).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/object_key.h"

namespace shunt::kube {

struct NodeAddress {
  std::string type;  // "InternalIP", "ExternalIP", "Hostname"...
  std::string address;
  bool operator==(const NodeAddress&) const = default;
};

struct Node {
  ObjectMeta meta;
  std::optional<std::string> zone;  // label topology.kubernetes.io/zone
  bool deleting = false;            // metadata.deletionTimestamp is set
  std::vector<std::string> pod_cidrs;
  std::vector<std::string> taint_keys;
  std::vector<NodeAddress> addresses;
  bool operator==(const Node&) const = default;
};

struct ServiceCidr {
  ObjectMeta meta;
  std::vector<std::string> cidrs;
  bool operator==(const ServiceCidr&) const = default;
};

inline constexpr char kZoneLabel[] = "topology.kubernetes.io/zone";

}  // namespace shunt::kube
