// What the API server would have added to an object before it stored it: Kubernetes' documented
// defaults, for objects that come from a file. Only what somebody reads. Pure.
//
// Conditions of endpoints have their defaults in the decoders, which the API needs as well.
#pragma once

#include <string>
#include <vector>

#include "kube/endpoint_slice.h"
#include "kube/node.h"
#include "kube/service.h"

namespace shunt::manifests {

void apply_defaults(kube::Service& service);
void apply_defaults(kube::EndpointSlice& slice);
void apply_defaults(kube::Node& node);
void apply_defaults(kube::ServiceCidr& cidr);

// What there is no default for, since only an API server can allocate or know it. When `set_aside`,
// the object cannot be used at all.
struct Lack {
  bool set_aside = false;
  std::string what;
  bool operator==(const Lack&) const = default;
};
std::vector<Lack> lacks_of(const kube::Service& service);
std::vector<Lack> lacks_of(const kube::EndpointSlice& slice);
std::vector<Lack> lacks_of(const kube::Node& node);
std::vector<Lack> lacks_of(const kube::ServiceCidr& cidr);

}  // namespace shunt::manifests
