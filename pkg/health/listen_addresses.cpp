#include "health/listen_addresses.h"

#include <algorithm>

#include "node/node_port_ranges.h"

namespace shunt::health {
namespace {

// fe80::/10 exists once a device: nobody can listen on it without naming one.
bool is_link_local(const net::IpAddress& ip) {
  return ip.family == net::Family::IPv6 && ip.bytes[0] == 0xfe && (ip.bytes[1] & 0xc0) == 0x80;
}

}  // namespace

std::vector<net::IpAddress> listen_addresses(
    net::Family family,
    std::span<const net::Cidr> ranges,
    const std::optional<std::vector<net::IpAddress>>& interfaces) {
  if (node::match_all(ranges) || !interfaces) {
    return {net::IpAddress{family, {}}};
  }
  std::vector<net::IpAddress> out;
  for (const net::IpAddress& ip : *interfaces) {
    if (ip.family == family && !is_link_local(ip) && node::cover(ranges, ip)) {
      out.push_back(ip);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace shunt::health
