#include "bench/suite/objects.h"

#include <fmt/format.h>

namespace shunt::bench {
namespace {

using nlohmann::json;

std::string ipv4(std::uint32_t host) {
  return fmt::format("{}.{}.{}.{}", host >> 24, host >> 16 & 0xff, host >> 8 & 0xff, host & 0xff);
}
std::string load_ip(std::size_t number) {
  return ipv4(0x0a600002U + static_cast<std::uint32_t>(number));  // 10.96.0.2 and on
}
std::string load_pod_ip(std::size_t number) {
  return ipv4(0x0a800001U + static_cast<std::uint32_t>(number));  // 10.128.0.1 and on
}

const char* name_of(net::Protocol protocol) {
  return protocol == net::Protocol::Udp ? "UDP" : "TCP";
}

json service_object(
    const std::string& ns, const std::string& name, const std::string& ip, const char* protocol) {
  return {
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", {{"namespace", ns}, {"name", name}}},
      {"spec",
       {{"type", "ClusterIP"},
        {"clusterIP", ip},
        {"clusterIPs", {ip}},
        {"ipFamilies", {"IPv4"}},
        {"ipFamilyPolicy", "SingleStack"},
        {"internalTrafficPolicy", "Cluster"},
        {"sessionAffinity", "None"},
        {"ports", {{{"name", "p"}, {"port", 80}, {"protocol", protocol}}}}}}};
}

json slice_object(
    const std::string& ns,
    const std::string& service,
    json endpoints,
    std::uint16_t port,
    const char* protocol) {
  return {
      {"apiVersion", "discovery.k8s.io/v1"},
      {"kind", "EndpointSlice"},
      {"metadata",
       {{"namespace", ns},
        {"name", service + "-1"},
        {"labels",
         {{"kubernetes.io/service-name", service},
          {"endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io"}}}}},
      {"addressType", "IPv4"},
      {"endpoints", std::move(endpoints)},
      {"ports", {{{"name", "p"}, {"port", port}, {"protocol", protocol}}}}};
}

json endpoint(const std::string& ip, bool ready) {
  return {
      {"addresses", {ip}},
      {"conditions", {{"ready", ready}, {"serving", ready}, {"terminating", false}}},
      {"nodeName", "edge-a"}};
}

}  // namespace

net::SocketAddress target_pod(unsigned number) {
  return {net::parse_ip(ipv4(0x0a400000U + number)).value(), net::Port{kTargetPodPort}};
}

net::SocketAddress ServiceTarget::address() const {
  return {net::parse_ip(cluster_ip).value(), net::Port{80}};
}
json ServiceTarget::service() const {
  return service_object(kNamespace, name, cluster_ip, name_of(protocol));
}
json ServiceTarget::slice(unsigned first, unsigned count) const {
  json endpoints = json::array();
  for (unsigned i = 0; i < count; ++i) {
    endpoints.push_back(endpoint(net::to_string(target_pod(first + i).ip), true));
  }
  return slice_object(kNamespace, name, std::move(endpoints), kTargetPodPort, name_of(protocol));
}
json ServiceTarget::slice_of_two(unsigned ready) const {
  json out = slice(1, 2);
  out["endpoints"][1 - ready] = endpoint(net::to_string(target_pod(2 - ready).ip), false);
  return out;
}
std::string ServiceTarget::service_path() const {
  return fmt::format("/api/v1/namespaces/{}/services/{}", kNamespace, name);
}
std::string ServiceTarget::slice_path() const {
  return fmt::format(
      "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices/{}-1", kNamespace, name);
}

std::string endpoints_patch(const json& slice) {
  return json{{"endpoints", slice.at("endpoints")}}.dump();
}

json node_object(const std::string& name, const std::string& ip) {
  return {
      {"apiVersion", "v1"},
      {"kind", "Node"},
      {"metadata", {{"name", name}}},
      {"status", {{"addresses", {{{"type", "InternalIP"}, {"address", ip}}}}}}};
}

json service_cidr_object(const std::string& cidr) {
  return {
      {"apiVersion", "networking.k8s.io/v1"},
      {"kind", "ServiceCIDR"},
      {"metadata", {{"name", "kubernetes"}}},
      {"spec", {{"cidrs", {cidr}}}}};
}

json load_service(std::size_t number) {
  return service_object("load", fmt::format("load-{}", number), load_ip(number), "TCP");
}
json load_slice(std::size_t number, std::size_t endpoints) {
  json list = json::array();
  for (std::size_t e = 0; e < endpoints; ++e) {
    list.push_back(endpoint(load_pod_ip(number * endpoints + e), true));
  }
  return slice_object("load", fmt::format("load-{}", number), std::move(list), 8080, "TCP");
}

net::SocketAddress load_address(std::size_t number) {
  return {net::parse_ip(load_ip(number)).value(), net::Port{80}};
}
net::SocketAddress load_pod(std::size_t number) {
  return {net::parse_ip(load_pod_ip(number)).value(), net::Port{8080}};
}

}  // namespace shunt::bench
