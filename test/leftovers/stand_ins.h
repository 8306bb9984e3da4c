// What kube-proxy leaves for one Service, 10.112.0.10:80 and [fdc0::10]:80 with the endpoint on
// port 8080 of a pod, in each of its modes, written by hand.
#pragma once

#include <string>

#include "net/ip_address.h"

namespace shunt::test {

// For nft -f: both families.
std::string nftables_mode();

// For iptables-restore or ip6tables-restore --noflush. Chains and rules of other owners come with
// it, none of which leads to kube-proxy's.
std::string iptables_mode(net::Family family);

// For ipset restore and then iptables-restore: the IPVS mode, without its virtual servers.
std::string ipvs_sets(net::Family family);
std::string ipvs_rules(net::Family family);

}  // namespace shunt::test
