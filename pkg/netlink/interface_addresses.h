// The addresses of this host's interfaces as they are now, loopback among them, for threads that
// ask once in a while. route.h has them with word of their changes.
#pragma once

#include <vector>

#include "base/result.h"
#include "net/ip_address.h"

namespace shunt::netlink {

// Sorted, each once, of both families. Any thread.
Result<std::vector<net::IpAddress>> interface_addresses();

}  // namespace shunt::netlink
