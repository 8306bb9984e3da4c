#include "node/local_traffic.h"

#include "node/ranges.h"

namespace shunt::node {
namespace {

using Method = LocalTraffic::Method;

}  // namespace

std::optional<net::Cidr> source_range(
    bool by_node,
    std::span<const net::Cidr> cluster_cidrs,
    std::span<const std::string> node_pod_cidrs,
    net::Family family) {
  return by_node ? first_of_family(of_family(node_pod_cidrs, family), family)
                 : first_of_family(cluster_cidrs, family);
}

LocalTraffic local_traffic(
    const config::Options& options,
    std::span<const std::string> node_pod_cidrs,
    net::Family family) {
  switch (options.detect_local) {
    case config::DetectLocalMode::ClusterCidr:
    case config::DetectLocalMode::NodeCidr: {
      const bool by_node = options.detect_local == config::DetectLocalMode::NodeCidr;
      const auto range = source_range(by_node, options.cluster_cidrs, node_pod_cidrs, family);
      return range ? LocalTraffic{Method::SourceRange, range, {}} : LocalTraffic{};
    }
    case config::DetectLocalMode::BridgeInterface:
      return {Method::InputInterface, std::nullopt, options.bridge_interface};
    case config::DetectLocalMode::InterfaceNamePrefix:
      return {Method::InputInterfacePrefix, std::nullopt, options.interface_name_prefix};
  }
  return {};
}

}  // namespace shunt::node
