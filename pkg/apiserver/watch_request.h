// The request targets of lists and watches (spec/api-objects.md §1, §7, §8). Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace shunt::apiserver {

// One resource as we read it: where it is, and which of its objects.
struct ResourceQuery {
  std::string_view name;  // "services", for logs
  std::string_view path;
  std::string label_selector;
  std::string field_selector;
};

// T: kube::Service, kube::EndpointSlice, kube::Node, kube::ServiceCidr. The Node query selects
// `node_name`, the others ignore it.
template <typename T>
ResourceQuery resource_query(const std::string& node_name);

struct ListRequest {
  std::string resource_version;  // "": a consistent read; "0": whatever the server has
  std::int64_t limit = 0;        // 0: everything
  std::string continue_token;    // follow-up page; resource_version is then not sent, or the server
                                 // rejects the request
};
std::string list_target(const ResourceQuery& query, const ListRequest& request);

struct WatchRequest {
  std::string resource_version;      // "" is not sent
  bool send_initial_events = false;  // a streaming list
  std::chrono::seconds timeout{0};   // the server ends the watch after that
};
std::string watch_target(const ResourceQuery& query, const WatchRequest& request);

// All but RFC 3986's unreserved characters are encoded.
std::string percent_encode(std::string_view text);

}  // namespace shunt::apiserver
