// Which of the node's addresses serve NodePorts (spec/semantics.md §13), as kube-proxy matches in
// general. That nftables never serves loopback is the back end's business.
#pragma once

#include <span>
#include <vector>

#include "net/cidr.h"
#include "node/own_addresses.h"

namespace shunt::node {

// The ranges of one family. Without any, and with one that covers the family, it is the whole
// family: ranges that were given for IPv4 alone leave IPv6 unrestricted.
std::vector<net::Cidr> node_port_ranges(std::span<const net::Cidr> setting, net::Family family);

bool match_all(std::span<const net::Cidr> ranges);

// What the setting `primary` means: the addresses of the node that are known. None, when none is;
// that leaves every family unrestricted, as in kube-proxy.
std::vector<net::Cidr> primary_ranges(const OwnAddresses& own);

// Whether the ranges of a family reach IPv4 loopback; always false for IPv6.
bool include_ipv4_loopback(std::span<const net::Cidr> ranges);

}  // namespace shunt::node
