// The layout that kube-proxy's nftables mode has: a chain for each Service and each endpoint, and a
// map of verdicts that leads to them. For what a connection costs there.
#pragma once

#include <cstddef>
#include <string>

namespace shunt::bench {

// What `nft -f` reads, for Services 10.96.0.2:80 and on (objects.h). Pure.
std::string chain_per_service(std::size_t services, std::size_t endpoints);

}  // namespace shunt::bench
