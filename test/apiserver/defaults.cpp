#include "test/apiserver/defaults.h"

#include "test/apiserver/identifiers.h"

namespace shunt::test_api {
namespace {

void set_absent(Json& object, const char* key, Json value) {
  if (!object.contains(key) || object[key].is_null()) {
    object[key] = std::move(value);
  }
}

bool is_array_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_array();
}

void default_ports(Json& spec) {
  if (!is_array_at(spec, "ports")) {
    return;
  }
  for (Json& port : spec["ports"]) {
    if (port.is_object()) {
      set_absent(port, "protocol", "TCP");
      if (port.contains("port")) {
        set_absent(port, "targetPort", port["port"]);
      }
    }
  }
}

void default_families(Json& spec) {
  const std::string cluster_ip = text_at(spec, "clusterIP");
  if (cluster_ip.empty()) {
    return;  // nothing to derive them from: this server allocates no addresses
  }
  set_absent(spec, "clusterIPs", Json::array({cluster_ip}));
  if (!spec.contains("ipFamilies")) {
    Json families = Json::array();
    for (const Json& ip : spec["clusterIPs"]) {
      const bool v6 = ip.is_string() && ip.get<std::string>().find(':') != std::string::npos;
      families.push_back(v6 ? "IPv6" : "IPv4");
    }
    spec["ipFamilies"] = std::move(families);
  }
  set_absent(
      spec, "ipFamilyPolicy", spec["ipFamilies"].size() > 1 ? "RequireDualStack" : "SingleStack");
}

void default_service(Json& object) {
  Json& spec = object_at(object, "spec");
  default_ports(spec);
  set_absent(spec, "type", "ClusterIP");
  set_absent(spec, "sessionAffinity", "None");
  const std::string type = text_at(spec, "type");
  if (text_at(spec, "sessionAffinity") == "ClientIP") {
    Json& client = object_at(object_at(spec, "sessionAffinityConfig"), "clientIP");
    set_absent(client, "timeoutSeconds", 10800);
  }
  if (type != "ExternalName") {
    default_families(spec);
    set_absent(spec, "internalTrafficPolicy", "Cluster");
  }
  const bool external_ips = is_array_at(spec, "externalIPs") && !spec["externalIPs"].empty();
  if (type == "NodePort" || type == "LoadBalancer" || (type == "ClusterIP" && external_ips)) {
    set_absent(spec, "externalTrafficPolicy", "Cluster");
  }
  if (type == "LoadBalancer") {
    set_absent(spec, "allocateLoadBalancerNodePorts", true);
  }
  set_absent(object_at(object, "status"), "loadBalancer", Json::object());
  Json& balancer = object["status"]["loadBalancer"];
  if (is_array_at(balancer, "ingress")) {
    for (Json& ingress : balancer["ingress"]) {
      if (ingress.is_object() && ingress.contains("ip")) {
        set_absent(ingress, "ipMode", "VIP");
      }
    }
  }
}

void default_slice(Json& object) {
  set_absent(object, "endpoints", nullptr);
  set_absent(object, "ports", nullptr);
  if (is_array_at(object, "ports")) {
    for (Json& port : object["ports"]) {
      if (port.is_object()) {
        set_absent(port, "protocol", "TCP");
        set_absent(port, "name", "");
      }
    }
  }
}

// Everything but metadata and status.
Json content_of(Json object) {
  object.erase("metadata");
  object.erase("status");
  return object;
}

}  // namespace

void apply_defaults(const Resource& resource, Json& object) {
  if (resource.plural == "services") {
    default_service(object);
  } else if (resource.plural == "endpointslices") {
    default_slice(object);
  }
}

void stamp_identity(const ObjectPtr& current, Json& object) {
  Json& metadata = object_at(object, "metadata");
  if (!current) {
    set_absent(metadata, "uid", new_uid());
    set_absent(metadata, "creationTimestamp", now_rfc3339());
    return;
  }
  const Json old = Json::parse(current->body);
  metadata["uid"] = current->uid;
  metadata["creationTimestamp"] = old["metadata"].value("creationTimestamp", Json());
}

void stamp_generation(const Resource& resource, const ObjectPtr& current, Json& object) {
  if (resource.plural != "endpointslices") {
    return;
  }
  Json& metadata = object_at(object, "metadata");
  if (!current) {
    set_absent(metadata, "generation", 1);
    return;
  }
  const Json old = Json::parse(current->body);
  metadata["generation"] =
      old["metadata"].value("generation", 0) + (content_of(object) == content_of(old) ? 0 : 1);
}

}  // namespace shunt::test_api
