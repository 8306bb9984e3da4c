#include <map>
#include <set>

#include "model/service_port.h"
#include "runner/compare.h"
#include "runner/kinds.h"
#include "runner/objects.h"
#include "store/object_store.h"

namespace shunt::conformance {
namespace {

using kube::ObjectKey;
using nlohmann::json;

template <typename T>
json texts(const std::vector<T>& values) {
  json list = json::array();
  for (const T& value : values) {
    list.push_back(net::to_string(value));
  }
  return list;
}

json as_json(const model::ServicePort& port) {
  return {
      {"clusterIP", net::to_string(port.cluster_ip)},
      {"port", number(port.port)},
      {"protocol", net::to_string(port.name.protocol)},
      {"nodePort", number(port.node_port)},
      {"externalIPs", texts(port.external_ips)},
      {"loadBalancerVIPs", texts(port.load_balancer_vips)},
      {"sourceRanges", texts(port.source_ranges)},
      {"affinity", port.affinity ? "ClientIP" : "None"},
      {"affinityTimeoutSeconds", port.affinity ? port.affinity->count() : 0},
      {"externalPolicyLocal", port.external_local},
      {"internalPolicyLocal", port.internal_local},
      {"healthCheckNodePort", number(port.health_check_node_port)},
      {"externallyReachable", port.externally_accessible()},
      {"usesCluster", port.uses_cluster_endpoints()},
      {"usesLocal", port.uses_local_endpoints()},
  };
}

// The Services of one family as the agent has them after a step.
using Ports = std::map<ObjectKey, model::ServicePorts>;

Ports ports_of(const store::ObjectStore& store, net::Family family) {
  Ports ports;
  for (const ObjectKey& key : store.service_keys()) {
    ports.emplace(key, model::service_ports(*store.service(key), family));
  }
  return ports;
}

std::vector<model::ServicePort> ports_or_none(const Ports& ports, const ObjectKey& key) {
  const auto found = ports.find(key);
  return found == ports.end() ? std::vector<model::ServicePort>{} : found->second.ports;
}

json seen_in(const Ports& before, const Ports& after, const std::set<ObjectKey>& touched) {
  json seen = {
      {"ports", json::object()},
      {"skipped", json::object()},
      {"changedServices", json::array()},
      {"healthCheckPorts", json::object()}};
  for (const auto& [key, service] : after) {
    if (service.skipped) {
      seen["skipped"][kube::to_string(key)] = model::to_string(*service.skipped);
    }
    for (const model::ServicePort& port : service.ports) {
      seen["ports"][model::to_string(port.name)] = as_json(port);
      if (number(port.health_check_node_port) != 0) {
        seen["healthCheckPorts"][kube::to_string(key)] = number(port.health_check_node_port);
      }
    }
  }
  // Only touched Services are looked at, as the agent does: a change that leaves no dirty key is a
  // bug that must show.
  for (const ObjectKey& key : touched) {
    if (ports_or_none(before, key) != ports_or_none(after, key)) {
      seen["changedServices"].push_back(kube::to_string(key));
    }
  }
  return seen;
}

void apply(const json& op, store::ObjectStore& store) {
  const auto service = decoded<kube::Service>(op.at("service"));
  if (op.at("op") == "delete") {
    (void)store.remove_service(service->meta.key);  // judged by its dirty key
  } else {
    (void)store.upsert(service);  // judged by its dirty key
  }
}

}  // namespace

CaseResult run_service_model(const json& test_case, const RunOptions&) {
  CaseResult result;
  store::ObjectStore store;
  std::map<net::Family, Ports> before;
  std::size_t index = 0;
  for (const json& step : test_case.at("steps")) {
    for (const json& op : step.at("ops")) {
      apply(op, store);
    }
    const store::Changes changes = store.take_changes();
    for (const net::Family family : {net::Family::IPv4, net::Family::IPv6}) {
      const std::string name(net::to_string(family));
      Ports after = ports_of(store, family);
      const json seen = seen_in(before[family], after, changes.services);
      before[family] = std::move(after);
      if (!step.at("expect").contains(name)) {
        continue;
      }
      const std::string where = within("step " + std::to_string(index), name);
      for (const auto& [part, expected] : step["expect"][name].items()) {
        compare(within(where, part), expected, seen.value(part, json()), result.messages);
      }
    }
    ++index;
  }
  result.outcome = result.messages.empty() ? Outcome::Passed : Outcome::Failed;
  return result;
}

}  // namespace shunt::conformance
