#include "health/listen_addresses.h"

#include <algorithm>

#include "node/node_port_ranges.h"

namespace shunt::health {

std::vector<net::IpAddress> listen_addresses(
    net::Family family,
    std::span<const net::Cidr> ranges,
    const std::optional<std::vector<net::IpAddress>>& interfaces) {
  if (node::match_all(ranges) || !interfaces) {
    return {net::IpAddress{family, {}}};
  }
  std::vector<net::IpAddress> out;
  for (const net::IpAddress& ip : *interfaces) {
    // Nobody can listen on a link-local address without naming a device.
    if (ip.family == family && !net::is_link_local(ip) && net::any_contains(ranges, ip)) {
      out.push_back(ip);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace shunt::health
