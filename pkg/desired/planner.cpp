#include "desired/planner.h"

#include <algorithm>
#include <utility>

#include "model/endpoint.h"
#include "model/service_port.h"

namespace shunt::desired {
namespace {

EndpointListPtr addresses(
    std::span<const model::Endpoint> endpoints,
    const std::vector<std::uint32_t>& chosen,
    bool local_only) {
  EndpointList list;
  list.reserve(local_only ? 0 : chosen.size());
  for (const std::uint32_t index : chosen) {
    const model::Endpoint& endpoint = endpoints[index];
    if (!local_only || endpoint.local) {
      list.push_back(endpoint.address);
    }
  }
  if (list.empty()) {
    return nullptr;
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return std::make_shared<const EndpointList>(std::move(list));
}

// spec/semantics.md §6: what happens to traffic that follows one policy.
FrontendPlan plan_policy(
    const model::ServicePort& port,
    std::span<const model::Endpoint> endpoints,
    const topology::Selection& selection,
    bool local_policy) {
  FrontendPlan plan;
  plan.service = model::display_name(port.name);
  plan.endpoints = addresses(endpoints, local_policy ? selection.local : selection.cluster, false);
  if (plan.endpoints && selection.any_in_cluster) {
    plan.fate = Fate::Balance;
    plan.hairpin = addresses(endpoints, selection.reachable, true);
  } else {
    plan.endpoints = nullptr;
    plan.fate = selection.any_in_cluster ? Fate::Drop : Fate::Refuse;
  }
  return plan;
}

}  // namespace

ServicePlan plan_service(
    const kube::Service* service,
    std::span<const std::shared_ptr<const kube::EndpointSlice>> slices,
    net::Family family,
    const topology::NodeTopology& node) {
  ServicePlan out;
  if (service == nullptr) {
    return out;
  }
  model::ServicePorts ports = model::service_ports(*service, family);
  out.issues = std::move(ports.issues);
  if (ports.ports.empty()) {
    return out;
  }
  model::ServiceEndpoints endpoints = model::merge_slices(slices, family, node.name);
  out.issues.insert(out.issues.end(), endpoints.issues.begin(), endpoints.issues.end());
  for (const model::ServicePort& port : ports.ports) {
    const model::PortEndpoints* found = model::find(endpoints, port.name.port, port.name.protocol);
    const std::span<const model::Endpoint> candidates =
        found == nullptr ? std::span<const model::Endpoint>{} : found->endpoints;
    const topology::Selection selection = topology::categorize(port, candidates, node);
    if (selection.any_in_cluster && selection.local.empty()) {
      out.internal_without_local += port.internal_local ? 1 : 0;
      out.external_without_local += port.external_local && port.externally_accessible() ? 1 : 0;
    }
    out.claims.push_back(
        {FrontendKey{port.cluster_ip, port.name.protocol, port.port},
         Seniority{service->meta.creation_seconds, service->meta.uid, model::to_string(port.name)},
         std::make_shared<const FrontendPlan>(
             plan_policy(port, candidates, selection, port.internal_local))});
  }
  return out;
}

}  // namespace shunt::desired
