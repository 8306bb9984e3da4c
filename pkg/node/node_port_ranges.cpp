#include "node/node_port_ranges.h"

#include <algorithm>

#include "node/ranges.h"

namespace shunt::node {

std::vector<net::Cidr> node_port_ranges(std::span<const net::Cidr> setting, net::Family family) {
  std::vector<net::Cidr> ranges = of_family(setting, family);
  if (ranges.empty() || match_all(ranges)) {
    return {whole_range(family)};
  }
  return ranges;
}

bool match_all(std::span<const net::Cidr> ranges) {
  return std::ranges::any_of(
      ranges, [](const net::Cidr& range) { return range.prefix_length == 0; });
}

std::vector<net::Cidr> primary_ranges(const OwnAddresses& own) {
  std::vector<net::Cidr> ranges;
  for (const net::IpAddress& ip : {own.ipv4, own.ipv6}) {
    if (!net::is_loopback(ip)) {
      ranges.push_back({ip, static_cast<std::uint8_t>(ip.size() * 8)});
    }
  }
  return ranges;
}

bool include_ipv4_loopback(std::span<const net::Cidr> ranges) {
  const net::IpAddress loopback_net{net::Family::IPv4, {127}};
  return std::ranges::any_of(ranges, [&](const net::Cidr& range) {
    const bool inside = range.base.family == net::Family::IPv4 && range.prefix_length >= 8 &&
                        range.base.bytes[0] == 127;
    return inside || net::contains(range, loopback_net);
  });
}

}  // namespace shunt::node
