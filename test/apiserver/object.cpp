#include "test/apiserver/object.h"

#include <fmt/format.h>

#include <initializer_list>

#include "test/apiserver/json_text.h"
#include "test/apiserver/protobuf.h"

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

std::map<std::string, std::string> string_map(std::string_view object) {
  std::map<std::string, std::string> out;
  for (Members entries(object); entries.next();) {
    if (entries.value().starts_with('"')) {
      out.emplace(
          string_value("\"" + std::string(entries.key()) + "\""), string_value(entries.value()));
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
  (void)object_at(dom, "metadata");  // there must be one
  return make_object(dom.dump(-1, ' ', false, Json::error_handler_t::replace), version);
}

ObjectPtr make_object(const std::string& text, std::uint64_t version) {
  auto object = std::make_shared<Object>();
  const std::string metadata = with_member(
      member(text, "metadata").value_or("{}"),
      "resourceVersion",
      json_string(std::to_string(version)));
  object->ns = text_member(metadata, "namespace");
  object->name = text_member(metadata, "name");
  object->uid = text_member(metadata, "uid");
  object->version = version;
  object->labels = string_map(member(metadata, "labels").value_or(""));
  const std::string_view spec = member(text, "spec").value_or("");
  object->cluster_ip = text_member(spec, "clusterIP");
  object->type = text_member(spec, "type");
  object->body = with_member(text, "metadata", metadata);
  return object;
}

ObjectPtr at_version(const Object& object, std::uint64_t version) {
  return make_object(object.body, version);
}

const std::string& Object::protobuf(const proto::Message& schema) const {
  std::call_once(encode_once_, [&] { protobuf_ = proto::encoded(schema, body); });
  return protobuf_;
}

std::string key_of(const Object& object) { return object_key(object.ns, object.name); }

std::string standalone_head(const Resource& resource) {
  return fmt::format(R"({{"kind":"{}","apiVersion":"{}",)", resource.kind, resource.api_version());
}

std::string standalone(const Resource& resource, const Object& object) {
  return standalone_head(resource).append(object.body, 1);
}

}  // namespace shunt::test_api
