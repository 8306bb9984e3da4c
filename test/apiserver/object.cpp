#include "test/apiserver/object.h"

#include <fmt/format.h>

#include <initializer_list>

namespace shunt::test_api {
namespace {

using Order = std::initializer_list<const char*>;

constexpr Order kTop{"metadata", "spec", "status", "addressType", "endpoints", "ports"};
constexpr Order kMetadata{
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields"};
constexpr Order kServiceSpec{
    "ports",
    "selector",
    "clusterIP",
    "clusterIPs",
    "type",
    "externalIPs",
    "sessionAffinity",
    "loadBalancerIP",
    "loadBalancerSourceRanges",
    "externalName",
    "externalTrafficPolicy",
    "healthCheckNodePort",
    "publishNotReadyAddresses",
    "sessionAffinityConfig",
    "ipFamilies",
    "ipFamilyPolicy",
    "allocateLoadBalancerNodePorts",
    "loadBalancerClass",
    "internalTrafficPolicy",
    "trafficDistribution"};
constexpr Order kServicePort{"name", "protocol", "appProtocol", "port", "targetPort", "nodePort"};
constexpr Order kEndpoint{
    "addresses",
    "conditions",
    "hostname",
    "targetRef",
    "deprecatedTopology",
    "nodeName",
    "zone",
    "hints"};
constexpr Order kSlicePort{"name", "protocol", "port", "appProtocol"};

// Known fields first, in the given order; unknown ones after them, as they came.
void reorder(Json& object, Order order) {
  if (!object.is_object()) {
    return;
  }
  Json sorted = Json::object();
  for (const char* name : order) {
    const auto found = object.find(name);
    if (found != object.end()) {
      sorted[name] = std::move(*found);
      object.erase(found);
    }
  }
  for (auto it = object.begin(); it != object.end(); ++it) {
    sorted[it.key()] = std::move(it.value());
  }
  object = std::move(sorted);
}

void reorder_each(Json& parent, const char* key, Order order) {
  const auto list = parent.is_object() ? parent.find(key) : parent.end();
  if (list == parent.end() || !list->is_array()) {
    return;
  }
  for (Json& item : *list) {
    reorder(item, order);
  }
}

std::map<std::string, std::string> string_map(const Json& parent, const char* key) {
  std::map<std::string, std::string> out;
  const auto found = parent.find(key);
  if (found == parent.end() || !found->is_object()) {
    return out;
  }
  for (auto it = found->begin(); it != found->end(); ++it) {
    if (it.value().is_string()) {
      out.emplace(it.key(), it.value().get<std::string>());
    }
  }
  return out;
}

}  // namespace

void sort_fields(const Resource& resource, Json& dom) {
  reorder(dom, kTop);
  reorder(object_at(dom, "metadata"), kMetadata);
  if (resource.plural == "services" && dom.contains("spec")) {
    reorder(dom["spec"], kServiceSpec);
    reorder_each(dom["spec"], "ports", kServicePort);
  } else if (resource.plural == "endpointslices") {
    reorder_each(dom, "endpoints", kEndpoint);
    reorder_each(dom, "ports", kSlicePort);
  }
}

ObjectPtr make_object(Json dom, std::uint64_t version) {
  auto object = std::make_shared<Object>();
  Json& metadata = object_at(dom, "metadata");
  metadata["resourceVersion"] = std::to_string(version);
  object->ns = text_at(metadata, "namespace");
  object->name = text_at(metadata, "name");
  object->uid = text_at(metadata, "uid");
  object->version = version;
  object->labels = string_map(metadata, "labels");
  const auto spec = dom.find("spec");
  if (spec != dom.end()) {
    object->cluster_ip = text_at(*spec, "clusterIP");
    object->type = text_at(*spec, "type");
  }
  object->body = dom.dump(-1, ' ', false, Json::error_handler_t::replace);
  return object;
}

ObjectPtr at_version(const Object& object, std::uint64_t version) {
  return make_object(Json::parse(object.body), version);
}

std::string standalone(const Resource& resource, const Object& object) {
  return fmt::format(
      R"({{"kind":"{}","apiVersion":"{}",{})",
      resource.kind,
      resource.api_version(),
      std::string_view(object.body).substr(1));
}

}  // namespace shunt::test_api
