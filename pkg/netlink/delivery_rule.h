// While the nftables mode lets the connections of the IPVS mode end, nobody marks packets to
// addresses of Services any more (virtual_addresses.h), and IPVS must see them all the same: a rule
// delivers all of them here that come in from anywhere. The node's own meet IPVS without it, and
// must not take such an address for their source.
//
// The rule leads to the table of VirtualAddresses, so that set_up() and tear_down() take it away.
#pragma once

#include "base/result.h"
#include "net/ip_address.h"

namespace shunt::netlink {

// Idempotent. In the network namespace of the thread.
Result<> deliver_unmarked(net::Family family);

// Whether any rule of the family leads to the table of VirtualAddresses: then kube-ipvs0 is ours,
// in use or on its way out, and not kube-proxy's.
Result<bool> has_delivery_rule(net::Family family);

}  // namespace shunt::netlink
