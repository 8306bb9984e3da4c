#include "backend/ipvs/share.h"

#include <algorithm>

#include "netlink/ipvs.h"

namespace shunt::backend::ipvs {
namespace {

std::uint32_t weight_of(const desired::FrontendPlan& plan, const net::SocketAddress& endpoint) {
  if (!plan.ipvs) {
    return 1;
  }
  const auto& weights = plan.ipvs->weights;
  const auto at = std::ranges::lower_bound(
      weights, endpoint, {}, [](const auto& entry) -> const auto& { return entry.first; });
  return at != weights.end() && at->first == endpoint ? at->second : 1;
}

}  // namespace

Balancing balancing_of(const desired::FrontendPlan& plan, const std::string& scheduler) {
  Balancing out;
  out.scheduler = scheduler;
  if (scheduler == "mh") {
    out.flags |= netlink::ipvs::kHashPort;
  }
  if (plan.affinity) {
    out.flags |= netlink::ipvs::kPersistent;
    out.timeout = plan.affinity->timeout;
  }
  // Without local endpoints all of them, as in kube-proxy: outsiders are dropped before they come
  // here, and pods and the node are led by the nftables program.
  const bool local = plan.reach == desired::Reach::ExternalLocal && plan.local_endpoints &&
                     !plan.local_endpoints->empty();
  if (const auto& list = local ? plan.local_endpoints : plan.endpoints) {
    out.reals.reserve(list->size());
    for (const net::SocketAddress& endpoint : *list) {
      out.reals.push_back({endpoint, weight_of(plan, endpoint)});
    }
  }
  return out;
}

desired::FrontendPlan nftables_share(const desired::FrontendPlan& plan) {
  desired::FrontendPlan out = plan;
  if (plan.affinity) {
    return out;
  }
  out.local_endpoints = nullptr;
  if (plan.reach != desired::Reach::ExternalLocal) {
    out.endpoints = nullptr;
  }
  return out;
}

}  // namespace shunt::backend::ipvs
