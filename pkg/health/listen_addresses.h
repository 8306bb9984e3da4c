// Where the health ports of Services listen (spec/conntrack-and-metrics.md §3): on the addresses
// that serve NodePorts. Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "net/cidr.h"

namespace shunt::health {

// `ranges`: of the family, as node::node_port_ranges() answers. `interfaces`: the addresses of this
// host, of any family; nothing when they could not be found out, which means all, as in kube-proxy.
// The unspecified address stands for every address of the family. Sorted; empty when no address of
// this host lies in the ranges.
std::vector<net::IpAddress> listen_addresses(
    net::Family family,
    std::span<const net::Cidr> ranges,
    const std::optional<std::vector<net::IpAddress>>& interfaces);

}  // namespace shunt::health
