// The sockets of the relay: non-blocking, closed on exec; addresses as values. The one place here
// that knows sockaddr and byte order.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <span>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/socket_address.h"

namespace shunt::relay {

net::IpAddress loopback(net::Family family);

// errno is in the error. Errc::Exists: somebody else has the port; Errc::Again: no descriptors or
// memory left.
Result<UniqueFd> listen_on(const net::SocketAddress& address, net::Protocol protocol);
// UDP is connected at once; TCP is on its way: connect_error() knows when it is writable.
Result<UniqueFd> connect_to(const net::SocketAddress& address, net::Protocol protocol);
int connect_error(int fd);

Result<UniqueFd> accept_from(int listener);
void reset_on_close(int fd);  // the peer shall see that it did not end well

// Receives into `buffer`; nothing when there is nothing (more) to receive.
std::optional<std::size_t> receive_from(int fd, std::span<char> buffer, net::SocketAddress& from);
void send_to(int fd, std::span<const char> datagram, const net::SocketAddress& to);

}  // namespace shunt::relay
