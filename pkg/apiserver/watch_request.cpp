#include "apiserver/watch_request.h"

#include <fmt/format.h>

#include "kube/endpoint_slice.h"
#include "kube/node.h"
#include "kube/service.h"

namespace shunt::apiserver {
namespace {

class Target {
 public:
  explicit Target(std::string_view path) : text_(path) {}
  void add(std::string_view name, std::string_view value) {
    text_ += separator_;
    text_ += name;
    text_ += '=';
    text_ += percent_encode(value);
    separator_ = '&';
  }
  void add_selectors(const ResourceQuery& query) {
    if (!query.label_selector.empty()) {
      add("labelSelector", query.label_selector);
    }
    if (!query.field_selector.empty()) {
      add("fieldSelector", query.field_selector);
    }
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  char separator_ = '?';
};

// Go's text of a duration of whole seconds: "7m3s". Harmless to the server, but logged by some.
std::string go_duration(std::chrono::seconds duration) {
  const auto total = duration.count();
  if (total >= 3600) {
    return fmt::format("{}h{}m{}s", total / 3600, total / 60 % 60, total % 60);
  }
  return total >= 60 ? fmt::format("{}m{}s", total / 60, total % 60) : fmt::format("{}s", total);
}

}  // namespace

template <>
ResourceQuery resource_query<kube::Service>(const std::string&) {
  return {
      "services",
      "/api/v1/services",
      std::string("!") + kube::kServiceProxyNameLabel,
      "spec.clusterIP!=None"};
}

template <>
ResourceQuery resource_query<kube::EndpointSlice>(const std::string&) {
  return {
      "endpointslices",
      "/apis/discovery.k8s.io/v1/endpointslices",
      std::string("!") + kube::kHeadlessLabel,
      ""};
}

template <>
ResourceQuery resource_query<kube::Node>(const std::string& node_name) {
  return {"nodes", "/api/v1/nodes", "", "metadata.name=" + node_name};
}

template <>
ResourceQuery resource_query<kube::ServiceCidr>(const std::string&) {
  return {"servicecidrs", "/apis/networking.k8s.io/v1/servicecidrs", "", ""};
}

std::string list_target(const ResourceQuery& query, const ListRequest& request) {
  Target target(query.path);
  target.add_selectors(query);
  if (request.limit > 0) {
    target.add("limit", std::to_string(request.limit));
  }
  if (!request.continue_token.empty()) {
    target.add("continue", request.continue_token);
  } else if (!request.resource_version.empty()) {
    target.add("resourceVersion", request.resource_version);
  }
  return target.take();
}

std::string watch_target(const ResourceQuery& query, const WatchRequest& request) {
  Target target(query.path);
  target.add("watch", "true");
  target.add("allowWatchBookmarks", "true");
  target.add_selectors(query);
  if (request.send_initial_events) {
    target.add("sendInitialEvents", "true");
    target.add("resourceVersionMatch", "NotOlderThan");
  }
  if (!request.resource_version.empty()) {
    target.add("resourceVersion", request.resource_version);
  }
  target.add("timeoutSeconds", std::to_string(request.timeout.count()));
  target.add("timeout", go_duration(request.timeout));
  return target.take();
}

std::string percent_encode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                            (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
    if (unreserved) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace shunt::apiserver
