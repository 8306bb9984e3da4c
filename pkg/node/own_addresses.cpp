#include "node/own_addresses.h"

#include <algorithm>

namespace shunt::node {
namespace {

void take(OwnAddresses& own, const net::IpAddress& ip) {
  (ip.family == net::Family::IPv4 ? own.ipv4 : own.ipv6) = ip;
}

}  // namespace

std::vector<net::IpAddress> addresses_of(const kube::Node& node) {
  std::vector<net::IpAddress> out;
  for (const char* type : {"InternalIP", "ExternalIP"}) {
    for (const kube::NodeAddress& address : node.addresses) {
      const auto ip = address.type == type ? net::parse_ip(address.address) : std::nullopt;
      const auto same_family = [&](const net::IpAddress& other) {
        return other.family == ip->family;
      };
      if (ip && std::ranges::none_of(out, same_family)) {
        out.push_back(*ip);
      }
    }
  }
  return out;
}

OwnAddresses own_addresses(
    std::span<const net::IpAddress> node_addresses, const net::IpAddress& bind_address) {
  OwnAddresses own;
  own.ipv4 = net::IpAddress{net::Family::IPv4, {127, 0, 0, 1}};
  own.ipv6.family = net::Family::IPv6;
  own.ipv6.bytes.back() = 1;
  for (const net::IpAddress& ip : node_addresses) {
    take(own, ip);
  }
  if (!node_addresses.empty()) {
    own.primary = node_addresses.front().family;
  }
  if (bind_address != net::IpAddress{bind_address.family, {}}) {
    own.primary = bind_address.family;
    take(own, bind_address);
  }
  return own;
}

}  // namespace shunt::node
