#include <map>

#include "model/endpoint.h"
#include "model/service_port.h"
#include "runner/compare.h"
#include "runner/kinds.h"
#include "runner/objects.h"
#include "store/object_store.h"
#include "topology/categorize.h"

namespace shunt::conformance {
namespace {

using nlohmann::json;

constexpr char kNamespace[] = "topology";
constexpr char kService[] = "service";
constexpr char kPort[] = "port";

// The cases speak of endpoints and policies; these functions write the objects that say the same,
// so that the case runs through decoder, store and model as in life.

json metadata(const std::string& name) { return {{"namespace", kNamespace}, {"name", name}}; }

json service_object(const json& service, net::Family family) {
  const bool external = service.at("externallyReachable");
  json port = {{"name", kPort}, {"port", 80}, {"protocol", "TCP"}};
  if (external) {
    port["nodePort"] = 30080;
  }
  json object = {{"apiVersion", "v1"}, {"kind", "Service"}, {"metadata", metadata(kService)}};
  object["metadata"]["annotations"] = service.value("annotations", json::object());
  object["spec"] = {
      {"type", external ? "NodePort" : "ClusterIP"},
      {"clusterIP", family == net::Family::IPv4 ? "10.112.0.1" : "fdc0::1"},
      {"ports", json::array({port})},
      {"internalTrafficPolicy", service.at("internalTrafficPolicy")},
      {"externalTrafficPolicy", service.at("externalTrafficPolicy")}};
  if (const json preference = service.value("trafficDistribution", json()); !preference.is_null()) {
    object["spec"]["trafficDistribution"] = preference;
  }
  return object;
}

json named(const json& names) {
  json list = json::array();
  for (const json& name : names) {
    list.push_back({{"name", name}});
  }
  return list;
}

json slice_endpoint(const json& record) {
  json endpoint = {
      {"addresses", json::array({record.at("address")})},
      {"conditions",
       {{"ready", record.at("ready")},
        {"serving", record.at("serving")},
        {"terminating", record.at("terminating")}}},
      {"hints",
       {{"forZones", named(record.at("forZones"))}, {"forNodes", named(record.at("forNodes"))}}}};
  for (const char* field : {"nodeName", "zone"}) {
    if (!record.at(field).is_null()) {
      endpoint[field] = record[field];
    }
  }
  return endpoint;
}

// A slice has one number a port, so there is one slice a number.
std::vector<json> slice_objects(const json& records, net::Family family) {
  std::map<int, json> by_number;
  for (const json& record : records) {
    json& slice = by_number[record.at("port").get<int>()];
    slice["endpoints"].push_back(slice_endpoint(record));
  }
  std::vector<json> slices;
  for (auto& [number, slice] : by_number) {
    slice["apiVersion"] = "discovery.k8s.io/v1";
    slice["kind"] = "EndpointSlice";
    slice["metadata"] = metadata("slice-" + std::to_string(number));
    slice["metadata"]["labels"] = {{kube::kServiceNameLabel, kService}};
    slice["addressType"] = net::to_string(family);
    slice["ports"] = json::array({{{"name", kPort}, {"port", number}, {"protocol", "TCP"}}});
    slices.push_back(std::move(slice));
  }
  return slices;
}

json node_object(const json& node) {
  return {
      {"apiVersion", "v1"},
      {"kind", "Node"},
      {"metadata", {{"name", node.at("name")}, {"labels", node.value("labels", json::object())}}}};
}

net::Family family_of_endpoints(const json& records) {
  if (records.empty()) {
    return net::Family::IPv4;
  }
  const auto ip = net::parse_ip(records.front().at("address").get<std::string>());
  return ip ? ip->family : net::Family::IPv4;
}

store::ObjectStore filled_store(const json& test_case, net::Family family) {
  store::ObjectStore store;
  store.upsert(decoded<kube::Node>(node_object(test_case.at("node"))));
  (void)store.upsert(decoded<kube::Service>(service_object(test_case.at("service"), family)));
  for (const json& slice : slice_objects(test_case.at("endpoints"), family)) {
    (void)store.upsert(decoded<kube::EndpointSlice>(slice));
  }
  return store;
}

json addresses(
    const std::vector<model::Endpoint>& endpoints, const std::vector<std::uint32_t>& indices) {
  json list = json::array();
  for (const std::uint32_t index : indices) {
    list.push_back(net::to_string(endpoints.at(index).address));
  }
  return list;
}

json as_json(const topology::Selection& selection, const std::vector<model::Endpoint>& endpoints) {
  json ignored = json::array();
  for (const topology::Ignored reason : selection.ignored) {
    ignored.push_back(topology::to_string(reason));
  }
  return {
      {"usesCluster", selection.uses_cluster},
      {"usesLocal", selection.uses_local},
      {"cluster", selection.uses_cluster ? addresses(endpoints, selection.cluster) : json(nullptr)},
      {"local", selection.uses_local ? addresses(endpoints, selection.local) : json(nullptr)},
      {"reachable", addresses(endpoints, selection.reachable)},
      {"anyInCluster", selection.any_in_cluster},
      {"distribution", topology::to_string(selection.distribution)},
      {"ignored", ignored}};
}

}  // namespace

CaseResult run_topology(const json& test_case, const RunOptions&) {
  const net::Family family = family_of_endpoints(test_case.at("endpoints"));
  const store::ObjectStore store = filled_store(test_case, family);
  const kube::ObjectKey key{kNamespace, kService};
  const kube::Node& node = *store.node();

  const auto ports = model::service_ports(*store.service(key), family);
  const auto merged = model::merge_slices(store.slices_of(key), family, node.meta.key.name);
  const auto* of_port = model::find(merged, kPort, net::Protocol::Tcp);
  const std::vector<model::Endpoint> endpoints =
      of_port != nullptr ? of_port->endpoints : std::vector<model::Endpoint>{};
  topology::NodeTopology here{node.meta.key.name, node.zone.value_or("")};
  here.honour_node_hints =
      test_case.value("settings", json::object()).value("honourNodeHints", true);
  const json seen = as_json(topology::categorize(ports.ports.at(0), endpoints, here), endpoints);

  CaseResult result;
  for (const auto& [part, expected] : test_case.at("expect").items()) {
    compare(
        part,
        expected,
        seen.value(part, json()),
        result.messages,
        part == "ignored" ? Lists::AreOrdered : Lists::AreSets);
  }
  result.outcome = result.messages.empty() ? Outcome::Passed : Outcome::Failed;
  return result;
}

}  // namespace shunt::conformance
