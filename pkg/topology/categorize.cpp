#include "topology/categorize.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace shunt::topology {
namespace {

using Endpoints = std::span<const model::Endpoint>;
using Indices = std::vector<std::uint32_t>;

// The last resort when nothing is ready: on its way out, but still answering.
bool is_draining(const model::Endpoint& endpoint) {
  return !endpoint.ready && endpoint.serving && endpoint.terminating;
}

template <typename Predicate>
Indices indices_of(Endpoints endpoints, Predicate wanted) {
  Indices indices;
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    if (wanted(endpoints[i])) {
      indices.push_back(static_cast<std::uint32_t>(i));
    }
  }
  return indices;
}

Indices cluster_endpoints(
    Endpoints endpoints, Distribution distribution, const NodeTopology& node) {
  Indices ready = indices_of(endpoints, [&](const model::Endpoint& e) {
    return e.ready && is_available(e, distribution, node);
  });
  return ready.empty() ? indices_of(endpoints, is_draining) : ready;  // whatever their hints
}

// Policy Local knows no hints, and falls back to draining endpoints on its own: others may be ready
// elsewhere.
Indices local_endpoints(Endpoints endpoints) {
  Indices ready =
      indices_of(endpoints, [](const model::Endpoint& e) { return e.local && e.ready; });
  if (!ready.empty()) {
    return ready;
  }
  return indices_of(endpoints, [](const model::Endpoint& e) { return e.local && is_draining(e); });
}

// Not simply `cluster`: hints and the draining fallback can make an endpoint local-only, and a back
// end that never heard of it would send packets to nowhere.
Indices union_of(const Indices& a, const Indices& b) {
  Indices both;
  both.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

bool contains(const Indices& indices, std::size_t index) {
  return std::binary_search(indices.begin(), indices.end(), static_cast<std::uint32_t>(index));
}

// Why an endpoint that no filter excludes is not used.
Exclusion condition_of(const model::Endpoint& endpoint) {
  if (!endpoint.terminating) {
    return Exclusion::NotReady;
  }
  return endpoint.serving ? Exclusion::Terminating : Exclusion::NotServing;
}

Exclusion excluded_from_cluster(const model::Endpoint& endpoint, Distribution distribution) {
  if (!endpoint.ready) {
    return condition_of(endpoint);
  }
  return distribution == Distribution::SameNode ? Exclusion::NoHintForNode
                                                : Exclusion::NoHintForZone;
}

}  // namespace

std::string_view to_string(Exclusion reason) {
  switch (reason) {
    case Exclusion::None:
      return "used";
    case Exclusion::PolicyNotUsed:
      return "no traffic follows this policy";
    case Exclusion::NotReady:
      return "not ready";
    case Exclusion::NotServing:
      return "terminating and no longer serving";
    case Exclusion::Terminating:
      return "terminating, and others are ready";
    case Exclusion::OtherNode:
      return "on another node";
    case Exclusion::NoHintForNode:
      return "no hint for this node";
    case Exclusion::NoHintForZone:
      return "no hint for this zone";
  }
  return "?";
}

Selection categorize(
    const model::ServicePort& port, Endpoints endpoints, const NodeTopology& node) {
  Selection selection;
  selection.uses_cluster = port.uses_cluster_endpoints();
  selection.uses_local = port.uses_local_endpoints();
  if (selection.uses_cluster) {
    HintFilter filter = hint_filter(endpoints, node);
    selection.distribution = filter.distribution;
    selection.ignored = std::move(filter.ignored);
    selection.cluster = cluster_endpoints(endpoints, selection.distribution, node);
    selection.any_in_cluster = !selection.cluster.empty();
  } else {
    selection.ignored = {Ignored::ClusterPolicyNotUsed};
  }
  if (selection.uses_local) {
    selection.local = local_endpoints(endpoints);
    selection.any_in_cluster =
        std::any_of(endpoints.begin(), endpoints.end(), [](const model::Endpoint& e) {
          return e.ready || is_draining(e);
        });
  }
  selection.reachable = union_of(selection.cluster, selection.local);
  return selection;
}

std::vector<Explanation> explain(
    const model::ServicePort& port, Endpoints endpoints, const NodeTopology& node) {
  const Selection selection = categorize(port, endpoints, node);
  std::vector<Explanation> explanations(endpoints.size());
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    const model::Endpoint& endpoint = endpoints[i];
    Explanation& why = explanations[i];
    if (!selection.uses_cluster) {
      why.cluster = Exclusion::PolicyNotUsed;
    } else if (!contains(selection.cluster, i)) {
      why.cluster = excluded_from_cluster(endpoint, selection.distribution);
    }
    if (!selection.uses_local) {
      why.local = Exclusion::PolicyNotUsed;
    } else if (!endpoint.local) {
      why.local = Exclusion::OtherNode;
    } else if (!contains(selection.local, i)) {
      why.local = condition_of(endpoint);
    }
  }
  return explanations;
}

}  // namespace shunt::topology
