// One file of manifests -> objects, as the API server would have delivered them. YAML of several
// documents, or JSON objects one after the other; Lists of them in either. Pure.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/endpoint_slice.h"
#include "kube/node.h"
#include "kube/service.h"

namespace shunt::manifests {

inline constexpr std::size_t kMaxFile = std::size_t{64} << 20;

struct Objects {
  std::vector<std::shared_ptr<const kube::Service>> services;
  std::vector<std::shared_ptr<const kube::EndpointSlice>> slices;
  std::vector<std::shared_ptr<const kube::Node>> nodes;
  std::vector<std::shared_ptr<const kube::ServiceCidr>> service_cidrs;

  std::size_t size() const {
    return services.size() + slices.size() + nodes.size() + service_cidrs.size();
  }
};

struct Manifest {
  Objects objects;  // with their defaults
  // "line 12: Service shop/web: spec.ports[0].port: expected a number, got a string". What cannot
  // be read loses only itself. Bounded.
  std::vector<std::string> complaints;
  std::size_t ignored = 0;  // objects of other kinds
};

enum class Format : std::uint8_t { Yaml, Json };

// Errors (Errc::Invalid) begin with "line 7: ": the file as a whole cannot be read.
Result<Manifest> parse_manifest(std::string_view text, Format format);

}  // namespace shunt::manifests
