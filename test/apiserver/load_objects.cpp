#include "test/apiserver/load_objects.h"

#include <fmt/format.h>

#include <algorithm>

#include "test/apiserver/json_text.h"
#include "test/apiserver/load_names.h"

namespace shunt::test_api {
namespace {

constexpr std::string_view kCreated = "2026-01-12T09:30:00Z";
constexpr std::size_t kApiServerIp = 1;
constexpr std::size_t kDnsIp = 10;

// Numbers of ClusterIPs in order, without the two that are taken.
std::size_t ip_number(std::size_t service) {
  const std::size_t number = service + 2;
  return number < kDnsIp ? number : number + 1;
}

std::string meta_head(
    const std::string& name, std::string_view ns, const std::string& uid, bool has_generation) {
  std::string out = fmt::format(R"({{"name":"{}",)", name);
  if (!ns.empty()) {
    out += fmt::format(R"("namespace":"{}",)", ns);
  }
  out += fmt::format(R"("uid":"{}","resourceVersion":"",)", uid);
  if (has_generation) {
    out += R"("generation":1,)";
  }
  return out + fmt::format(R"("creationTimestamp":"{}")", kCreated);
}

std::string manager(
    std::string_view name,
    std::string_view api_version,
    const std::string& fields,
    std::string_view subresource = "") {
  std::string out = fmt::format(
      R"({{"manager":"{}","operation":"Update","apiVersion":"{}","time":"{}",)"
      R"("fieldsType":"FieldsV1","fieldsV1":{})",
      name,
      api_version,
      kCreated,
      fields);
  if (!subresource.empty()) {
    out += fmt::format(R"(,"subresource":"{}")", subresource);
  }
  return out + "}";
}

std::string service_managers() {
  static const std::string text =
      "[" +
      manager(
          "helm",
          "v1",
          R"({"f:metadata":{"f:annotations":{".":{},"f:meta.helm.sh/release-name":{},)"
          R"("f:meta.helm.sh/release-namespace":{}},"f:labels":{".":{},)"
          R"("f:app.kubernetes.io/instance":{},"f:app.kubernetes.io/managed-by":{},)"
          R"("f:app.kubernetes.io/name":{},"f:helm.sh/chart":{}}},"f:spec":{)"
          R"("f:internalTrafficPolicy":{},"f:ports":{".":{},)"
          R"("k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{},)"
          R"("f:protocol":{},"f:targetPort":{}}},"f:selector":{},"f:sessionAffinity":{},)"
          R"("f:type":{}}})") +
      "]";
  return text;
}

std::string slice_managers(const std::string& owner_uid) {
  return "[" +
         manager(
             "kube-controller-manager",
             "discovery.k8s.io/v1",
             R"({"f:addressType":{},"f:endpoints":{},"f:metadata":{"f:annotations":{".":{},)"
             R"("f:endpoints.kubernetes.io/last-change-trigger-time":{}},"f:generateName":{},)"
             R"("f:labels":{".":{},"f:app.kubernetes.io/instance":{},)"
             R"("f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{},)"
             R"("f:endpointslice.kubernetes.io/managed-by":{},"f:helm.sh/chart":{},)"
             R"("f:kubernetes.io/service-name":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\")" +
                 owner_uid + R"(\"}":{}}},"f:ports":{}})") +
         "]";
}

std::string quoted_list(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  std::ranges::transform(texts, std::back_inserter(out), json_string);
  return array_of(out);
}

std::string families_part(const std::vector<std::string>& families, std::size_t number) {
  std::vector<std::string> ips;
  std::ranges::transform(families, std::back_inserter(ips), [&](const std::string& family) {
    return cluster_ip(family, number);
  });
  return fmt::format(
      R"("clusterIP":"{}","clusterIPs":{},"type":"ClusterIP","sessionAffinity":"None",)"
      R"("ipFamilies":{},"ipFamilyPolicy":"{}","internalTrafficPolicy":"Cluster"}},)"
      R"("status":{{"loadBalancer":{{}}}}}})",
      ips.front(),
      quoted_list(ips),
      quoted_list(families),
      families.size() > 1 ? "RequireDualStack" : "SingleStack");
}

}  // namespace

ClusterObjects::ClusterObjects(
    ClusterSpec spec, std::uint64_t seed, std::size_t first_service, std::size_t first_pod)
    : spec_(std::move(spec)), seed_(seed), first_service_(first_service), first_pod_(first_pod) {}

std::string ClusterObjects::node_name(std::size_t node) const {
  return node == 0 && !spec_.node.empty() ? spec_.node
                                          : fmt::format("{}-node-{}", spec_.prefix, node);
}

std::string ClusterObjects::zone_name(std::size_t node) const {
  return fmt::format("zone-{}", node % spec_.zones);
}

std::vector<LoadObject> ClusterObjects::service(std::size_t index) const {
  Owner owner;
  owner.ns = fmt::format("{}-ns-{}", spec_.prefix, index % spec_.namespaces);
  owner.name = fmt::format("{}-{:06}", spec_.prefix, index);
  owner.uid = uid_of(mixed(seed_, owner.name));
  owner.labels = fmt::format(
      R"("app.kubernetes.io/instance":"{0}","app.kubernetes.io/managed-by":"Helm",)"
      R"("app.kubernetes.io/name":"{0}","helm.sh/chart":"{1}-1.4.2")",
      owner.name,
      spec_.prefix);
  std::vector<LoadObject> out{{"Service", service_text(owner, first_service_ + index)}};
  const std::size_t pods = first_pod_ + index * spec_.endpoints;
  for (const std::string& family : spec_.families) {
    std::size_t begin = 0;
    do {  // a Service without endpoints has an empty slice
      const std::size_t end = std::min(begin + kMaxSliceEndpoints, spec_.endpoints);
      out.push_back({"EndpointSlice", slice_text(owner, family, pods + begin, pods + end)});
      begin = end;
    } while (begin < spec_.endpoints);
  }
  return out;
}

std::string ClusterObjects::service_text(const Owner& owner, std::size_t number) const {
  std::string out = R"({"metadata":)" + meta_head(owner.name, owner.ns, owner.uid, false) +
                    fmt::format(
                        R"(,"labels":{{{0}}},"annotations":{{"meta.helm.sh/release-name":"{1}",)"
                        R"("meta.helm.sh/release-namespace":"{2}"}},"managedFields":)",
                        owner.labels,
                        owner.name,
                        owner.ns) +
                    service_managers();
  out += fmt::format(
      R"(}},"spec":{{"ports":[{{"name":"p","protocol":"TCP","port":80,"targetPort":8080}}],)"
      R"("selector":{{"app.kubernetes.io/instance":"{0}","app.kubernetes.io/name":"{0}"}},)",
      owner.name);
  return out + families_part(spec_.families, ip_number(number));
}

std::string ClusterObjects::slice_text(
    const Owner& owner, std::string_view family, std::size_t begin, std::size_t end) const {
  const std::uint64_t seed = mixed(mixed(mixed(seed_, owner.name), family), begin);
  const std::string generate_name = owner.name + "-";
  std::string out = R"({"metadata":)";
  out +=
      fmt::format(R"({{"name":"{0}{1}","generateName":"{0}",)", generate_name, suffix_of(seed, 5));
  out += fmt::format(
      R"("namespace":"{0}","uid":"{1}","resourceVersion":"","generation":1,)"
      R"("creationTimestamp":"{2}","labels":{{{3},)"
      R"("endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io",)"
      R"("kubernetes.io/service-name":"{4}"}},)"
      R"("annotations":{{"endpoints.kubernetes.io/last-change-trigger-time":"{2}"}},)"
      R"("ownerReferences":[{{"apiVersion":"v1","kind":"Service","name":"{4}","uid":"{5}",)"
      R"("controller":true,"blockOwnerDeletion":true}}],"managedFields":)",
      owner.ns,
      uid_of(seed),
      kCreated,
      owner.labels,
      owner.name,
      owner.uid);
  out += slice_managers(owner.uid);
  out += fmt::format(R"(}},"addressType":"{}","endpoints":)", family);
  std::string_view separator = "[";
  for (std::size_t pod = begin; pod < end; ++pod) {
    out.append(separator).append(endpoint_text(owner, family, pod));
    separator = ",";
  }
  out += begin == end ? R"(null,"ports":null})"
                      : R"(],"ports":[{"name":"p","protocol":"TCP","port":8080}]})";
  return out;
}

std::string ClusterObjects::endpoint_text(
    const Owner& owner, std::string_view family, std::size_t pod) const {
  const std::uint64_t seed = mixed(seed_, pod);
  const std::size_t node = seed % spec_.nodes;
  const std::string zone = zone_name(node);
  std::string out = fmt::format(
      R"({{"addresses":["{}"],"conditions":{{"ready":true,"serving":true,"terminating":false}},)"
      R"("targetRef":{{"kind":"Pod","namespace":"{}","name":"{}-{}-{}","uid":"{}"}},)"
      R"("nodeName":"{}","zone":"{}")",
      pod_ip(family, pod + 1),
      owner.ns,
      owner.name,
      suffix_of(mixed(seed_, owner.name), 10),
      suffix_of(seed, 5),
      uid_of(seed),
      node_name(node),
      zone);
  if (spec_.hints) {
    out += fmt::format(R"(,"hints":{{"forZones":[{{"name":"{}"}}]}})", zone);
  }
  return out + "}";
}

std::vector<LoadObject> ClusterObjects::basics() const {
  std::vector<LoadObject> out{service_cidr()};
  std::ranges::move(apiserver(), std::back_inserter(out));
  std::ranges::move(dns(), std::back_inserter(out));
  if (!spec_.node.empty()) {
    out.push_back(node());
  }
  return out;
}

LoadObject ClusterObjects::service_cidr() const {
  std::vector<std::string> cidrs;
  for (const std::string& family : spec_.families) {
    cidrs.emplace_back(family == "IPv6" ? "fd00:10:96::/108" : "10.96.0.0/12");
  }
  return {
      "ServiceCIDR",
      R"({"metadata":)" + meta_head("kubernetes", "", uid_of(mixed(seed_, "cidr")), false) +
          fmt::format(
              R"(}},"spec":{{"cidrs":{}}},"status":{{"conditions":[{{"type":"Ready",)"
              R"("status":"True","lastTransitionTime":"{}","reason":"",)"
              R"("message":"Kubernetes default Service CIDR is ready"}}]}}}})",
              quoted_list(cidrs),
              kCreated)};
}

std::vector<LoadObject> ClusterObjects::apiserver() const {
  const std::string address = spec_.node_addresses.front();
  const std::string family = address.find(':') == std::string::npos ? "IPv4" : "IPv6";
  const std::string labels = R"("component":"apiserver","provider":"kubernetes")";
  const auto meta = [&](std::string_view more) {
    return R"({"metadata":)" +
           meta_head("kubernetes", "default", uid_of(mixed(seed_, more)), !more.empty()) +
           fmt::format(R"(,"labels":{{{}}}}},)", more.empty() ? labels : std::string(more));
  };
  return {
      {"Service",
       meta("") +
           R"("spec":{"ports":[{"name":"https","protocol":"TCP","port":443,"targetPort":6443}],)" +
           families_part({spec_.families.front()}, kApiServerIp)},
      {"EndpointSlice",
       meta(R"("kubernetes.io/service-name":"kubernetes")") +
           fmt::format(
               R"("addressType":"{}","endpoints":[{{"addresses":["{}"],)"
               R"("conditions":{{"ready":true}}}}],)"
               R"("ports":[{{"name":"https","protocol":"TCP","port":6443}}]}})",
               family,
               address)}};
}

std::vector<LoadObject> ClusterObjects::dns() const {
  Owner owner{"kube-system", "kube-dns", uid_of(mixed(seed_, "kube-dns")), ""};
  owner.labels = R"("k8s-app":"kube-dns","kubernetes.io/name":"CoreDNS")";
  constexpr std::size_t kFirstPod = 8'000'000;  // of 10.128.0.0/9; nobody else gets that far
  std::vector<LoadObject> out{
      {"Service",
       R"({"metadata":)" + meta_head(owner.name, owner.ns, owner.uid, false) +
           fmt::format(
               R"(,"labels":{{{}}}}},"spec":{{"ports":[)"
               R"({{"name":"dns","protocol":"UDP","port":53,"targetPort":53}},)"
               R"({{"name":"dns-tcp","protocol":"TCP","port":53,"targetPort":53}},)"
               R"({{"name":"metrics","protocol":"TCP","port":9153,"targetPort":9153}}],)"
               R"("selector":{{"k8s-app":"kube-dns"}},)",
               owner.labels) +
           families_part(spec_.families, kDnsIp)}};
  for (const std::string& family : spec_.families) {
    const std::string slice = slice_text(owner, family, kFirstPod, kFirstPod + 2);
    out.push_back(
        {"EndpointSlice",
         with_member(
             slice,
             "ports",
             R"([{"name":"dns","protocol":"UDP","port":53},)"
             R"({"name":"dns-tcp","protocol":"TCP","port":53},)"
             R"({"name":"metrics","protocol":"TCP","port":9153}])")});
  }
  return out;
}

LoadObject ClusterObjects::node() const {
  std::string addresses;
  for (const std::string& address : spec_.node_addresses) {
    addresses += fmt::format(R"({{"type":"InternalIP","address":{}}},)", json_string(address));
  }
  return {
      "Node",
      R"({"metadata":)" + meta_head(spec_.node, "", uid_of(mixed(seed_, spec_.node)), false) +
          fmt::format(
              R"(,"labels":{{"kubernetes.io/hostname":"{0}","kubernetes.io/os":"linux",)"
              R"("topology.kubernetes.io/region":"region-0","topology.kubernetes.io/zone":"{1}"}}}},)"
              R"("spec":{{"podCIDR":"10.128.0.0/24","podCIDRs":["10.128.0.0/24"]}},)"
              R"("status":{{"conditions":[{{"type":"Ready","status":"True",)"
              R"("lastHeartbeatTime":"{2}","lastTransitionTime":"{2}","reason":"KubeletReady",)"
              R"("message":"kubelet is posting ready status"}}],)"
              R"("addresses":[{3}{{"type":"Hostname","address":"{0}"}}],)"
              R"("daemonEndpoints":{{"kubeletEndpoint":{{"Port":10250}}}},)"
              R"("nodeInfo":{{"machineID":"","systemUUID":"","bootID":"","kernelVersion":"6.1.0",)"
              R"("osImage":"Debian GNU/Linux 12",)"
              R"("containerRuntimeVersion":"containerd://2.1.0","kubeletVersion":"v1.36.0",)"
              R"("kubeProxyVersion":"","operatingSystem":"linux","architecture":"amd64"}}}}}})",
              spec_.node,
              zone_name(0),
              kCreated,
              addresses)};
}

}  // namespace shunt::test_api
