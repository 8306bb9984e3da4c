// The resources that the server knows, and what a URL path asks for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "test/apiserver/proto_schema.h"

namespace shunt::test_api {

struct Resource {
  std::string_view plural;  // "endpointslices"
  std::string_view group;   // "" for core
  std::string_view version;
  std::string_view kind;
  bool namespaced = false;
  std::string_view
      bookmark_rest;  // what a bookmark carries beside metadata: an object with zero values
  const proto::Message* schema = nullptr;  // null: JSON only

  std::string api_version() const;  // "v1", "discovery.k8s.io/v1"
};

// `index` numbers the tables of the store. Events are reachable through two groups and live once.
inline constexpr std::size_t kTables = 5;
struct TableRef {
  const Resource* resource = nullptr;
  std::size_t index = 0;
};
const std::vector<TableRef>& all_resources();
std::optional<TableRef> resource_of_kind(std::string_view kind);

// A parsed path. `table.resource` is null for a resource we do not serve: authorization comes
// before that matters.
struct Target {
  std::string group;
  std::string version;
  std::string plural;
  std::string ns;
  std::string name;
  std::string subresource;
  TableRef table;
};
std::optional<Target> parse_target(std::string_view path);

// "shop/web", or the bare name of a cluster-scoped object: the order of keys is etcd's.
std::string object_key(std::string_view ns, std::string_view name);

}  // namespace shunt::test_api
