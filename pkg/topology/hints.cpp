#include "topology/hints.h"

#include <algorithm>

namespace shunt::topology {
namespace {

bool names(const std::vector<std::string>& hints, const std::string& name) {
  return std::binary_search(hints.begin(), hints.end(), name);
}

// What the ready endpoints say, together, in one kind of hint.
struct Consensus {
  bool complete = true;  // every ready endpoint carries such a hint
  bool for_us = false;   // one of them names us
  // `us` is null when hints of this kind count as absent.
  void add(const std::vector<std::string>& hints, const std::string* us) {
    complete = complete && us != nullptr && !hints.empty();
    for_us = for_us || (us != nullptr && names(hints, *us));
  }
};

}  // namespace

std::string_view to_string(Distribution d) {
  switch (d) {
    case Distribution::None:
      return "none";
    case Distribution::SameZone:
      return "same-zone";
    case Distribution::SameNode:
      return "same-node";
  }
  return "?";
}

std::string_view to_string(Ignored reason) {
  switch (reason) {
    case Ignored::NoReadyEndpoints:
      return "no-ready-endpoints";
    case Ignored::NodeHintMissingOnEndpoint:
      return "node-hint-missing-on-endpoint";
    case Ignored::NoEndpointHintedForNode:
      return "no-endpoint-hinted-for-node";
    case Ignored::ZoneHintMissingOnEndpoint:
      return "zone-hint-missing-on-endpoint";
    case Ignored::NoEndpointHintedForZone:
      return "no-endpoint-hinted-for-zone";
    case Ignored::NodeZoneUnknown:
      return "node-zone-unknown";
    case Ignored::ClusterPolicyNotUsed:
      return "cluster-policy-not-used";
  }
  return "?";
}

HintFilter hint_filter(std::span<const model::Endpoint> endpoints, const NodeTopology& node) {
  bool any_ready = false;
  Consensus on_node;
  Consensus on_zone;
  for (const model::Endpoint& endpoint : endpoints) {
    if (endpoint.ready) {
      any_ready = true;
      on_node.add(endpoint.node_hints, node.honour_node_hints ? &node.name : nullptr);
      on_zone.add(endpoint.zone_hints, &node.zone);
    }
  }
  if (!any_ready) {
    return {Distribution::None, {Ignored::NoReadyEndpoints}};
  }
  HintFilter filter;
  if (on_node.complete && on_node.for_us) {
    filter.distribution = Distribution::SameNode;
    return filter;
  }
  filter.ignored.push_back(
      on_node.complete ? Ignored::NoEndpointHintedForNode : Ignored::NodeHintMissingOnEndpoint);
  if (on_zone.complete && on_zone.for_us) {
    filter.distribution = Distribution::SameZone;
  } else if (!on_zone.complete) {
    filter.ignored.push_back(Ignored::ZoneHintMissingOnEndpoint);
  } else {
    filter.ignored.push_back(
        node.zone.empty() ? Ignored::NodeZoneUnknown : Ignored::NoEndpointHintedForZone);
  }
  return filter;
}

bool is_available(
    const model::Endpoint& endpoint, Distribution distribution, const NodeTopology& node) {
  switch (distribution) {
    case Distribution::None:
      return true;
    case Distribution::SameZone:
      return names(endpoint.zone_hints, node.zone);
    case Distribution::SameNode:
      return names(endpoint.node_hints, node.name);
  }
  return true;
}

}  // namespace shunt::topology
