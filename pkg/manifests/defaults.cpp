#include "manifests/defaults.h"

#include <algorithm>

#include "kube/decoded.h"
#include "net/ip_address.h"

namespace shunt::manifests {
namespace {

constexpr std::int32_t kAffinitySeconds = 10800;

void set_absent(std::string& field, std::string_view value) {
  if (field.empty()) {
    field = value;
  }
}

bool takes_node_ports(const kube::Service& service) {
  return service.type == "NodePort" || service.type == "LoadBalancer";
}
bool is_headless(const kube::Service& service) { return service.cluster_ip == "None"; }

// clusterIP and clusterIPs say the same, the families follow from the addresses.
void default_addresses(kube::Service& service) {
  if (service.cluster_ips.empty() && !service.cluster_ip.empty()) {
    service.cluster_ips = {service.cluster_ip};
  }
  if (service.cluster_ip.empty() && !service.cluster_ips.empty()) {
    service.cluster_ip = service.cluster_ips.front();
  }
  if (is_headless(service)) {
    return;
  }
  for (std::size_t i = service.ip_families.size(); i < service.cluster_ips.size(); ++i) {
    const auto ip = net::parse_ip(service.cluster_ips[i]);
    if (!ip) {
      return;  // the model says what is wrong with it
    }
    service.ip_families.emplace_back(net::to_string(ip->family));
  }
}

// What the API takes as a name, roughly: keys of objects are made of it.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

std::vector<Lack> lacks_of_name(const kube::ObjectMeta& meta, bool namespaced) {
  std::vector<Lack> lacks;
  if (!is_name(meta.key.name)) {
    lacks.push_back({true, "metadata.name: \"" + kube::excerpt(meta.key.name) + "\" is no name"});
  }
  if (namespaced && !is_name(meta.key.name_space)) {
    lacks.push_back(
        {true, "metadata.namespace: \"" + kube::excerpt(meta.key.name_space) + "\" is no name"});
  }
  return lacks;
}

}  // namespace

void apply_defaults(kube::Service& service) {
  set_absent(service.meta.key.name_space, "default");
  set_absent(service.type, "ClusterIP");
  if (service.type != "ExternalName") {
    default_addresses(service);
    if (!service.internal_traffic_policy) {
      service.internal_traffic_policy = "Cluster";
    }
  }
  set_absent(service.session_affinity, "None");
  if (service.session_affinity == "ClientIP" && !service.client_ip_timeout_seconds) {
    service.client_ip_timeout_seconds = kAffinitySeconds;
  }
  if (takes_node_ports(service) || !service.external_ips.empty()) {
    set_absent(service.external_traffic_policy, "Cluster");
  }
  for (kube::ServicePortSpec& port : service.ports) {
    set_absent(port.protocol, "TCP");
  }
  for (kube::LoadBalancerIngress& ingress : service.ingress) {
    if (!ingress.ip.empty() && !ingress.ip_mode) {
      ingress.ip_mode = "VIP";
    }
  }
}

void apply_defaults(kube::EndpointSlice& slice) {
  set_absent(slice.meta.key.name_space, "default");
  for (kube::SlicePort& port : slice.ports) {
    set_absent(port.protocol, "TCP");
    if (!port.name) {
      port.name = "";
    }
  }
}

// Both belong to no namespace, whatever the file says.
void apply_defaults(kube::Node& node) { node.meta.key.name_space.clear(); }
void apply_defaults(kube::ServiceCidr& cidr) { cidr.meta.key.name_space.clear(); }

std::vector<Lack> lacks_of(const kube::Service& service) {
  std::vector<Lack> lacks = lacks_of_name(service.meta, true);
  if (service.type == "ExternalName" || is_headless(service)) {
    return lacks;
  }
  if (service.cluster_ip.empty()) {
    lacks.push_back(
        {true,
         "spec.clusterIP is not given, and without an API server nobody allocates one; its "
         "externalIPs and node ports are not served either"});
    return lacks;
  }
  for (const kube::ServicePortSpec& port : service.ports) {
    if (takes_node_ports(service) && port.node_port == 0) {
      lacks.push_back(
          {false,
           "spec.ports \"" + kube::excerpt(port.name) +
               "\": nodePort is not given, and without an API server nobody allocates one"});
    }
  }
  return lacks;
}

std::vector<Lack> lacks_of(const kube::EndpointSlice& slice) {
  std::vector<Lack> lacks = lacks_of_name(slice.meta, true);
  if (slice.address_type.empty()) {
    lacks.push_back({true, "addressType is not given"});
  }
  if (slice.service_name.empty()) {
    lacks.push_back(
        {true,
         std::string("it belongs to no Service: label ") + kube::kServiceNameLabel +
             " is not given"});
  }
  return lacks;
}

std::vector<Lack> lacks_of(const kube::Node& node) { return lacks_of_name(node.meta, false); }
std::vector<Lack> lacks_of(const kube::ServiceCidr& cidr) {
  return lacks_of_name(cidr.meta, false);
}

}  // namespace shunt::manifests
