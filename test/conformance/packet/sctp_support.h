// Whether this machine's kernel can do with SCTP what a Service needs: rewrite and track it. SCTP
// sockets are not needed, since the runner makes its own packets.
#pragma once

#include <optional>
#include <string>

namespace shunt::conformance::packet {

// Sends an INIT through a rule that rewrites both ends. Why it did not come out so, or nothing.
std::optional<std::string> why_no_sctp();

}  // namespace shunt::conformance::packet
