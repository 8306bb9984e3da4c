#include "test/apiserver/resource.h"

#include <algorithm>

namespace shunt::test_api {
namespace {

constexpr std::string_view kServiceRest = R"("spec":{},"status":{"loadBalancer":{}})";
constexpr std::string_view kSliceRest = R"("addressType":"","endpoints":null,"ports":null)";
constexpr std::string_view kNodeRest =
    R"("spec":{},"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},)"
    R"("nodeInfo":{"machineID":"","systemUUID":"","bootID":"","kernelVersion":"","osImage":"",)"
    R"("containerRuntimeVersion":"","kubeletVersion":"","kubeProxyVersion":"",)"
    R"("operatingSystem":"","architecture":""}})";
constexpr std::string_view kCidrRest = R"("spec":{},"status":{})";
constexpr std::string_view kEventRest = R"("eventTime":null,"regarding":{})";

std::vector<std::string_view> split_path(std::string_view path) {
  std::vector<std::string_view> out;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0) {
      out.push_back(path.substr(0, end));
    }
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return out;
}

TableRef find_table(const Target& target) {
  for (const TableRef& table : all_resources()) {
    const Resource& resource = *table.resource;
    if (resource.plural == target.plural && resource.group == target.group &&
        resource.version == target.version) {
      return table;
    }
  }
  return {};
}

}  // namespace

std::string Resource::api_version() const {
  return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
}

const std::vector<TableRef>& all_resources() {
  using proto::kEndpointSlice, proto::kNode, proto::kService, proto::kServiceCidr;
  static const Resource services{"services", "", "v1", "Service", true, kServiceRest, &kService};
  static const Resource nodes{"nodes", "", "v1", "Node", false, kNodeRest, &kNode};
  static const Resource slices{
      "endpointslices",
      "discovery.k8s.io",
      "v1",
      "EndpointSlice",
      true,
      kSliceRest,
      &kEndpointSlice};
  static const Resource cidrs{
      "servicecidrs", "networking.k8s.io", "v1", "ServiceCIDR", false, kCidrRest, &kServiceCidr};
  static const Resource events{"events", "events.k8s.io", "v1", "Event", true, kEventRest, nullptr};
  static const Resource core_events{"events", "", "v1", "Event", true, kEventRest, nullptr};
  static const std::vector<TableRef> all{
      {&services, 0}, {&nodes, 1}, {&slices, 2}, {&cidrs, 3}, {&events, 4}, {&core_events, 4}};
  return all;
}

std::optional<TableRef> resource_of_kind(std::string_view kind) {
  const auto found = std::ranges::find_if(
      all_resources(), [&](const TableRef& table) { return table.resource->kind == kind; });
  return found == all_resources().end() ? std::nullopt : std::optional(*found);
}

std::optional<Target> parse_target(std::string_view path) {
  const auto parts = split_path(path);
  Target target;
  std::size_t at = 0;
  if (parts.size() >= 3 && parts[0] == "api") {
    target.version = parts[1];
    at = 2;
  } else if (parts.size() >= 4 && parts[0] == "apis") {
    target.group = parts[1];
    target.version = parts[2];
    at = 3;
  } else {
    return std::nullopt;
  }
  if (parts[at] == "namespaces" && parts.size() >= at + 3) {
    target.ns = parts[at + 1];
    at += 2;
  }
  target.plural = parts[at];
  if (parts.size() > at + 1) {
    target.name = parts[at + 1];
  }
  if (parts.size() > at + 2) {
    target.subresource = parts[at + 2];
  }
  target.table = find_table(target);
  return target;
}

std::string object_key(std::string_view ns, std::string_view name) {
  return ns.empty() ? std::string(name) : std::string(ns) + "/" + std::string(name);
}

}  // namespace shunt::test_api
