// Which endpoints of one service port this node may use, and why not the others (spec/semantics.md
// §5). Pure: no I/O, no log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/endpoint.h"
#include "model/service_port.h"
#include "topology/hints.h"

namespace shunt::topology {

// Why an endpoint is not among the usable ones of a policy.
enum class Exclusion : std::uint8_t {
  None,           // it is used
  PolicyNotUsed,  // no traffic of this port follows this policy
  NotReady,       // not ready and not terminating
  NotServing,     // terminating and no longer serving
  Terminating,    // serving, but others are ready
  OtherNode,      // policy Local
  NoHintForNode,  // the same-node filter applies
  NoHintForZone,  // the same-zone filter applies
};
std::string_view to_string(Exclusion reason);  // a few words for people

struct Selection {
  bool uses_cluster = false;  // some traffic follows policy Cluster
  bool uses_local = false;    // some traffic follows policy Local
  // Indices into the endpoints given, ascending. Empty when the policy is not used, or nothing is
  // usable.
  std::vector<std::uint32_t> cluster;
  std::vector<std::uint32_t> local;
  std::vector<std::uint32_t> reachable;  // union of the two
  bool any_in_cluster = false;  // somebody, somewhere, could serve: "drop" rather than "refuse"
                                // when nothing is usable here
  Distribution distribution = Distribution::None;
  std::vector<Ignored> ignored;
  bool operator==(const Selection&) const = default;
};

Selection categorize(
    const model::ServicePort& port,
    std::span<const model::Endpoint> endpoints,
    const NodeTopology& node);

// One entry an endpoint; computed on demand, since only people ask.
struct Explanation {
  Exclusion cluster = Exclusion::None;
  Exclusion local = Exclusion::None;
  bool operator==(const Explanation&) const = default;
};
std::vector<Explanation> explain(
    const model::ServicePort& port,
    std::span<const model::Endpoint> endpoints,
    const NodeTopology& node);

}  // namespace shunt::topology
