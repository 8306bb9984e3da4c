// The objects of a generated cluster, as text: what a real one's look like, managedFields and all,
// since a client has to read all of that to get at the few bytes it wants. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "test/apiserver/load_spec.h"

namespace shunt::test_api {

struct LoadObject {
  std::string_view kind;
  std::string text;  // without kind, apiVersion and resourceVersion
};

inline constexpr std::size_t kMaxSliceEndpoints = 100;  // where the slice controller cuts

class ClusterObjects {
 public:
  // Numbers go on behind those of an earlier cluster, so that no address is used twice.
  ClusterObjects(
      ClusterSpec spec, std::uint64_t seed, std::size_t first_service, std::size_t first_pod);

  // What every cluster has: default/kubernetes, kube-dns, the ServiceCIDR, the node under test.
  std::vector<LoadObject> basics() const;
  // A Service, and its slices behind it.
  std::vector<LoadObject> service(std::size_t index) const;

  const ClusterSpec& spec() const { return spec_; }

 private:
  struct Owner {
    std::string ns;
    std::string name;
    std::string uid;
    std::string labels;  // JSON members, without braces
  };
  std::string service_text(const Owner& owner, std::size_t number) const;
  std::string slice_text(
      const Owner& owner, std::string_view family, std::size_t begin, std::size_t end) const;
  std::string endpoint_text(const Owner& owner, std::string_view family, std::size_t pod) const;
  std::string node_name(std::size_t node) const;
  std::string zone_name(std::size_t node) const;
  LoadObject node() const;
  LoadObject service_cidr() const;
  std::vector<LoadObject> dns() const;
  std::vector<LoadObject> apiserver() const;

  const ClusterSpec spec_;
  const std::uint64_t seed_;
  const std::size_t first_service_;
  const std::size_t first_pod_;
};

}  // namespace shunt::test_api
