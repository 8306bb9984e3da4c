#include "config/sanity.h"

#include <algorithm>
#include <span>

namespace shunt::config {
namespace {

bool has(std::span<const net::Cidr> ranges, net::Family family) {
  return std::ranges::any_of(
      ranges, [&](const net::Cidr& range) { return range.base.family == family; });
}

}  // namespace

std::vector<Doubt> doubts(const Options& options, const std::vector<net::Family>& families) {
  std::vector<Doubt> out;
  const bool dual_stack = families.size() > 1;
  if (options.node_port_addresses.kind == NodePortAddresses::Kind::Ranges) {
    for (const net::Family family : families) {
      if (!has(options.node_port_addresses.ranges, family)) {
        std::string what = "nodePortAddresses has no ";
        what.append(net::to_string(family)).append(" range, so that NodePorts answer on every ");
        what.append(net::to_string(family)).append(" address of the node");
        out.push_back({false, std::move(what)});
      }
    }
  }
  if (options.detect_local == DetectLocalMode::ClusterCidr && !options.cluster_cidrs.empty() &&
      !dual_stack && !has(options.cluster_cidrs, families.front())) {
    std::string what = "clusterCIDR has no ";
    what.append(net::to_string(families.front())).append(" range, and this node has nothing else");
    out.push_back({true, std::move(what)});
  }
  const auto& excluded = options.ipvs.exclude_cidrs;
  if (options.mode == Mode::Ipvs && !excluded.empty() && !dual_stack &&
      !has(excluded, families.front())) {
    std::string what = "ipvs.excludeCIDRs has no ";
    what.append(net::to_string(families.front())).append(" range, and this node has nothing else");
    out.push_back({false, std::move(what)});
  }
  return out;
}

}  // namespace shunt::config
