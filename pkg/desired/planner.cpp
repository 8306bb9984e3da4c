#include "desired/planner.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "model/endpoint.h"
#include "model/service_port.h"

namespace shunt::desired {
namespace {

using Endpoints = std::span<const model::Endpoint>;
using SourcesPtr = std::shared_ptr<const std::vector<net::Cidr>>;

EndpointListPtr shared_list(EndpointList list) {
  if (list.empty()) {
    return nullptr;
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return std::make_shared<const EndpointList>(std::move(list));
}

EndpointListPtr chosen(Endpoints endpoints, const std::vector<std::uint32_t>& indices) {
  EndpointList list;
  list.reserve(indices.size());
  for (const std::uint32_t index : indices) {
    list.push_back(endpoints[index].address);
  }
  return shared_list(std::move(list));
}

EndpointListPtr serving(Endpoints endpoints) {
  EndpointList list;
  for (const model::Endpoint& endpoint : endpoints) {
    if (endpoint.serving) {
      list.push_back(endpoint.address);
    }
  }
  return shared_list(std::move(list));
}

// spec/semantics.md §3: restricted to some sources, of which the balancer addresses themselves are
// some if the node is.
SourcesPtr sources(const model::ServicePort& port, const NodeView& node) {
  if (port.source_ranges.empty()) {
    return nullptr;
  }
  std::vector<net::Cidr> list = port.source_ranges;
  if (node.ip && net::any_contains(list, *node.ip)) {
    for (const net::IpAddress& vip : port.load_balancer_vips) {
      list.push_back({vip, static_cast<std::uint8_t>(vip.size() * 8)});
    }
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return std::make_shared<const std::vector<net::Cidr>>(std::move(list));
}

using IpvsPtr = std::shared_ptr<const IpvsWishes>;

// Endpoints of another weight than 1, sorted.
using Weights = decltype(IpvsWishes::weights);
Weights weights(Endpoints endpoints) {
  Weights list;
  for (const model::Endpoint& endpoint : endpoints) {
    if (endpoint.weight != 1) {
      list.emplace_back(endpoint.address, endpoint.weight);
    }
  }
  std::sort(list.begin(), list.end());
  return list;
}

bool holds(const EndpointListPtr& list, const net::SocketAddress& endpoint) {
  return list && std::binary_search(list->begin(), list->end(), endpoint);
}

// What is asked of IPVS for a frontend that uses these endpoints: weights of others would touch it
// for nothing.
IpvsPtr wishes(
    const model::IpvsAnnotations& asked,
    const Weights& weights,
    const EndpointListPtr& some,
    const EndpointListPtr& more) {
  IpvsWishes out;
  out.scheduler = asked.scheduler;
  std::ranges::copy_if(weights, std::back_inserter(out.weights), [&](const auto& weight) {
    return holds(some, weight.first) || holds(more, weight.first);
  });
  return out == IpvsWishes{} ? nullptr : std::make_shared<const IpvsWishes>(std::move(out));
}

// The claims of one service port. Every frontend of the port shares its lists.
class PortPlanner {
 public:
  PortPlanner(
      const model::ServicePort& port, Endpoints endpoints, const topology::Selection& selection)
      : port_(port),
        name_(model::display_name(port.name)),
        any_(selection.any_in_cluster),
        cluster_(any_ ? chosen(endpoints, selection.cluster) : nullptr),
        local_(any_ ? chosen(endpoints, selection.local) : nullptr),
        serving_(port.name.protocol == net::Protocol::Udp ? serving(endpoints) : nullptr) {
    if (port.ipvs) {
      const Weights of_port = weights(endpoints);
      internal_ipvs_ =
          wishes(*port.ipvs, of_port, port.internal_local ? local_ : cluster_, nullptr);
      external_ipvs_ =
          wishes(*port.ipvs, of_port, cluster_, port.external_local ? local_ : nullptr);
    }
  }

  void plan(const NodeView& node, ServicePlan& out) {
    claim_address(port_.cluster_ip, internal(), out);
    // An address that is a balancer's and an externalIP too keeps the balancer's source ranges.
    const SourcesPtr allowed = sources(port_, node);
    for (const net::IpAddress& vip : port_.load_balancer_vips) {
      FrontendPlan plan = external();
      plan.sources = allowed;
      plan.balancer = true;
      claim_address(vip, std::move(plan), out);
    }
    for (const net::IpAddress& ip : port_.external_ips) {
      claim_address(ip, external(), out);
    }
    if (net::number(port_.node_port) != 0) {
      claim(
          node_port_key(port_.cluster_ip.family, port_.name.protocol, port_.node_port),
          external(),
          out);
    }
  }

 private:
  FrontendKey key(const net::IpAddress& ip) const { return {ip, port_.name.protocol, port_.port}; }

  FrontendPlan plan_with(Reach reach, bool local_policy) const {
    FrontendPlan plan;
    plan.service = name_;
    plan.reach = reach;
    plan.serving = serving_;
    const EndpointListPtr& deciding = local_policy ? local_ : cluster_;
    plan.fate = deciding ? Fate::Balance : any_ ? Fate::Drop : Fate::Refuse;
    if (port_.affinity) {
      const bool external = port_.externally_accessible();
      Affinity& affinity = plan.affinity.emplace();
      affinity.timeout = *port_.affinity;
      affinity.group = key(port_.cluster_ip);
      affinity.cluster_memory = !port_.internal_local || external;
      affinity.local_memory = port_.internal_local || (external && port_.external_local);
    }
    return plan;
  }

  FrontendPlan internal() const {
    FrontendPlan plan = plan_with(Reach::Internal, port_.internal_local);
    plan.endpoints = port_.internal_local ? local_ : cluster_;
    plan.ipvs = internal_ipvs_;
    plan.internal_local = port_.internal_local;
    plan.health_check_port = port_.health_check_node_port;
    if (plan.affinity) {
      plan.affinity->local_policy = port_.internal_local;
    }
    return plan;
  }

  FrontendPlan external() const {
    FrontendPlan plan = plan_with(
        port_.external_local ? Reach::ExternalLocal : Reach::External, port_.external_local);
    plan.endpoints = cluster_;
    plan.local_endpoints = port_.external_local ? local_ : nullptr;
    plan.ipvs = external_ipvs_;
    return plan;
  }

  void claim(const FrontendKey& frontend, FrontendPlan plan, ServicePlan& out) const {
    out.claims.push_back({frontend, std::make_shared<const FrontendPlan>(std::move(plan))});
  }
  // 0.0.0.0 as an address would be taken for a NodePort.
  void claim_address(const net::IpAddress& ip, FrontendPlan plan, ServicePlan& out) const {
    if (is_node_port(key(ip))) {
      out.issues.push_back(
          "port \"" + port_.name.port + "\": " + net::to_string(ip) +
          " cannot be the address of a Service");
      return;
    }
    claim(key(ip), std::move(plan), out);
  }

  const model::ServicePort& port_;
  std::string name_;
  bool any_;
  EndpointListPtr cluster_;
  EndpointListPtr local_;
  EndpointListPtr serving_;
  IpvsPtr internal_ipvs_;
  IpvsPtr external_ipvs_;
};

// Two ports of one Service with the same number, or NodePort. DesiredState gives the frontend to
// the first by name, and says nothing.
void name_shared_frontends(ServicePlan& out) {
  std::vector<const Claim*> claims;
  claims.reserve(out.claims.size());
  for (const Claim& claim : out.claims) {
    claims.push_back(&claim);
  }
  std::sort(claims.begin(), claims.end(), [](const Claim* a, const Claim* b) {
    return std::tie(a->key, a->plan->service) < std::tie(b->key, b->plan->service);
  });
  const Claim* first = nullptr;
  for (const Claim* claim : claims) {
    if (first == nullptr || first->key != claim->key) {
      first = claim;
    } else if (first->plan->service != claim->plan->service) {
      out.issues.push_back(
          to_string(claim->key) + " is given twice, " + first->plan->service + " has it and " +
          claim->plan->service + " does not");
    }
  }
}

}  // namespace

ServicePlan plan_service(
    const kube::Service* service,
    std::span<const std::shared_ptr<const kube::EndpointSlice>> slices,
    net::Family family,
    const NodeView& node) {
  ServicePlan out;
  if (service == nullptr) {
    return out;
  }
  out.seniority = {service->meta.creation_seconds, service->meta.uid};
  model::ServicePorts ports = model::service_ports(*service, family);
  out.issues = std::move(ports.issues);
  if (ports.ports.empty()) {
    return out;
  }
  const auto& ipvs = ports.ports.front().ipvs;  // the ports of a Service have it in common
  model::ServiceEndpoints endpoints =
      model::merge_slices(slices, family, node.topology.name, ipvs ? &ipvs->weights : nullptr);
  out.issues.insert(out.issues.end(), endpoints.issues.begin(), endpoints.issues.end());
  // The ports of a Service have it in common; only Services that have one pay for the count.
  if (const net::Port port = ports.ports.front().health_check_node_port; net::number(port) != 0) {
    out.health_check = {port, model::local_ready_addresses(endpoints)};
  }
  const bool several = ports.ports.size() > 1;
  for (model::ServicePort& port : ports.ports) {
    if (!node.external_ips) {
      port.external_ips.clear();
    }
    const model::PortEndpoints* found = model::find(endpoints, port.name.port, port.name.protocol);
    const Endpoints candidates = found == nullptr ? Endpoints{} : Endpoints(found->endpoints);
    const topology::Selection selection = topology::categorize(port, candidates, node.topology);
    if (selection.any_in_cluster && selection.local.empty()) {
      out.internal_without_local += port.internal_local ? 1 : 0;
      out.external_without_local += port.external_local && port.externally_accessible() ? 1 : 0;
    }
    PortPlanner(port, candidates, selection).plan(node, out);
  }
  if (several) {
    name_shared_frontends(out);
  }
  return out;
}

}  // namespace shunt::desired
