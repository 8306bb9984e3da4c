// Listening TCP sockets; the one place here that knows sockaddr and byte order.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/socket_address.h"

namespace shunt::http {

// How an unspecified address is meant.
enum class Stack : std::uint8_t {
  One,   // that family alone: [::] is v6-only, so that it does not collide with 0.0.0.0
  Both,  // as Go's "tcp": either unspecified address means both families; IPv4 alone where the
         // host has no IPv6
};

struct ListenAddress {
  net::SocketAddress address;  // port 0 is refused: nobody would find it
  Stack stack = Stack::One;
};
std::string to_string(const ListenAddress& address);

// Non-blocking. Errc::Exists: somebody else has the port; NotFound: no such address here; Again: no
// descriptors or memory left. The error names the address.
Result<UniqueFd> listen_on(const ListenAddress& address);

}  // namespace shunt::http
