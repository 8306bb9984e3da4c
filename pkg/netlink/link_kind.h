// Whether the kernel makes network devices of a kind ("dummy"), without making one.
#pragma once

#include <optional>

namespace shunt::netlink {

// Makes the kernel load the module of that kind where it may. None: it did not say, for lack of
// CAP_NET_ADMIN. Any thread, in its network namespace.
std::optional<bool> makes_links(const char* kind);

}  // namespace shunt::netlink
