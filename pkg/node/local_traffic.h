// How traffic of pods of this node is told from other traffic (spec/config.md §7).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "config/options.h"
#include "net/cidr.h"

namespace shunt::node {

struct LocalTraffic {
  enum class Method : std::uint8_t {
    None,  // it cannot be told: what depends on it is left out
    SourceRange,
    InputInterface,
    InputInterfacePrefix
  };
  Method method = Method::None;
  std::optional<net::Cidr> range;  // SourceRange
  std::string name;                // of the interface, or its prefix
};

// The range of the modes that go by source: the first of the family, of the Node's podCIDRs or of
// the configured ranges.
std::optional<net::Cidr> source_range(
    bool by_node,
    std::span<const net::Cidr> cluster_cidrs,
    std::span<const std::string> node_pod_cidrs,
    net::Family family);

LocalTraffic local_traffic(
    const config::Options& options,
    std::span<const std::string> node_pod_cidrs,
    net::Family family);

}  // namespace shunt::node
