// The addresses by which this node knows itself (spec/config.md §5). They decide about source
// ranges of balancers and about `nodePortAddresses: [primary]`, and nothing is bound to them.
#pragma once

#include <span>
#include <vector>

#include "kube/node.h"
#include "net/ip_address.h"

namespace shunt::node {

// From the Node object: internal addresses before external ones, the first of each family, the
// primary family first. What is no address is passed over.
std::vector<net::IpAddress> addresses_of(const kube::Node& node);

// A family of which nothing is known has its loopback address.
struct OwnAddresses {
  net::Family primary = net::Family::IPv4;
  net::IpAddress ipv4;
  net::IpAddress ipv6;

  const net::IpAddress& of(net::Family family) const {
    return family == net::Family::IPv4 ? ipv4 : ipv6;
  }
  bool operator==(const OwnAddresses&) const = default;
};

// `node_addresses` as addresses_of() answers; `bind_address` as configured: unless unspecified, it
// decides the primary family and replaces the node's address of that family.
OwnAddresses own_addresses(
    std::span<const net::IpAddress> node_addresses, const net::IpAddress& bind_address);

}  // namespace shunt::node
