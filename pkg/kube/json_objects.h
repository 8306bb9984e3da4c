// The shapes of the API objects in JSON: one table a struct, rows in the order of
// spec/api-objects.md.
#pragma once

#include <string>

#include "kube/decode_json.h"
#include "kube/json_shape.h"

namespace shunt::kube::json {

// What a BOOKMARK event carries: an object of the watched kind with nothing but this.
struct Bookmark {
  ObjectMeta meta;
  bool initial_events_end = false;
};

struct StatusBody {
  std::string kind;
  ApiStatus status;
};

// Of Service, EndpointSlice, Node, ServiceCidr, Bookmark and StatusBody: the struct that is filled
// is the struct that is named.
template <typename T>
Shape shape_for();

}  // namespace shunt::kube::json
