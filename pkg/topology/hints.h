// Which topology hints apply on this node: those for the node, those for its zone, or none
// (spec/semantics.md §5, topologyMode). Pure: no I/O, no log.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/endpoint.h"

namespace shunt::topology {

struct NodeTopology {
  std::string name;
  std::string zone;  // "" when the node has no zone label
  // False: hints for nodes count as absent, as in clusters whose other proxies do not know them.
  bool honour_node_hints = true;
};

// The filter that was applied to the cluster endpoints.
enum class Distribution : std::uint8_t { None, SameZone, SameNode };
std::string_view to_string(Distribution d);  // "none", "same-zone", "same-node"

// Why a finer filter was not applied, in the order of consideration.
enum class Ignored : std::uint8_t {
  NoReadyEndpoints,
  NodeHintMissingOnEndpoint,
  NoEndpointHintedForNode,
  ZoneHintMissingOnEndpoint,
  NoEndpointHintedForZone,
  NodeZoneUnknown,
  ClusterPolicyNotUsed,
};
std::string_view to_string(Ignored reason);  // "no-ready-endpoints" ...

struct HintFilter {
  Distribution distribution = Distribution::None;
  std::vector<Ignored> ignored;
  bool operator==(const HintFilter&) const = default;
};

// Only ready endpoints have a say: a terminating one without hints must not disable the hints of
// the others. The choice guarantees that at least one ready endpoint is available under it.
HintFilter hint_filter(std::span<const model::Endpoint> endpoints, const NodeTopology& node);

// Whether the filter lets an endpoint through.
bool is_available(
    const model::Endpoint& endpoint, Distribution distribution, const NodeTopology& node);

}  // namespace shunt::topology
