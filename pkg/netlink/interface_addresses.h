// The addresses of this host's interfaces, loopback among them.
#pragma once

#include <optional>
#include <vector>

#include "net/ip_address.h"

namespace shunt::health {

// Sorted, of both families. Nothing when the kernel does not say.
std::optional<std::vector<net::IpAddress>> interface_addresses();

}  // namespace shunt::health
