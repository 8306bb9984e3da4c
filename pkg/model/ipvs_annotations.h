// What the annotations of a Service ask of IPVS: a scheduler, and weights of endpoints
// (backend/ipvs/ANNOTATIONS.md). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/service.h"
#include "net/ip_address.h"

namespace shunt::model {

inline constexpr std::size_t kMaxWeightParts = 256;  // of one annotation; those after them are void

struct EndpointWeights {
  std::map<net::IpAddress, std::uint16_t> addresses;
  std::map<std::string, std::uint16_t, std::less<>> nodes;
  std::optional<std::uint16_t> local;  // endpoints of this node
  std::map<std::string, std::uint16_t, std::less<>> zones;
  std::optional<std::uint16_t> all;
  bool operator==(const EndpointWeights&) const = default;

  // The most specific word counts: address, node, local, zone, all; 1 when there is none.
  std::uint16_t of(
      const net::IpAddress& ip, std::string_view node, bool is_local, std::string_view zone) const;
};

struct IpvsAnnotations {
  std::string scheduler;  // "": the configured one
  EndpointWeights weights;
  bool operator==(const IpvsAnnotations&) const = default;
};

// Nothing: the Service asks for nothing. What cannot be read is named in `issues`, a sentence each
// and a bounded number of them; the rest counts.
std::optional<IpvsAnnotations> ipvs_annotations(
    const kube::Service& service, std::vector<std::string>& issues);

}  // namespace shunt::model
