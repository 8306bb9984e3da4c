// The shapes of the API objects in JSON: one table a struct, rows in the order of
// spec/api-objects.md.
#pragma once

#include <string>

#include "kube/decoded.h"
#include "kube/json_shape.h"

namespace shunt::kube::json {

struct StatusBody {
  std::string kind;
  ApiStatus status;
};

// Of Service, EndpointSlice, Node, ServiceCidr, Bookmark and StatusBody: the struct that is filled
// is the struct that is named.
template <typename T>
Shape shape_for();

}  // namespace shunt::kube::json
