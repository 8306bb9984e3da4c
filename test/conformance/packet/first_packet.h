// The sending side: a client socket whose first packet carries a number, so that it can be
// recognised wherever and as whatever it comes out. TCP and UDP are real sockets; SCTP, which not
// every kernel has, is an INIT chunk from a raw socket. A refusal shows as an error of the socket.
#pragma once

#include <cstdint>

#include "base/unique_fd.h"
#include "net/socket_address.h"

namespace shunt::conformance::packet {

struct Attempt {
  UniqueFd fd;
  net::SocketAddress from;
  std::uint32_t id = 0;
  int error = 0;  // what the kernel told the client, once it did
};

// Sends from the calling thread's namespace. `from` has a port.
Attempt send_first_packet(
    net::Protocol protocol,
    const net::SocketAddress& from,
    const net::SocketAddress& to,
    std::uint32_t id);

// Another datagram, with another number, from the same UDP socket.
void send_again(Attempt& attempt, std::uint32_t id);

// Looks for news of a refusal.
void look_for_error(Attempt& attempt);

// A TCP segment out of nowhere, in the calling thread's namespace: IPv4 only.
void send_stray_segment(
    const net::SocketAddress& from,
    const net::SocketAddress& to,
    std::uint32_t sequence,
    std::uint32_t acknowledgement);

}  // namespace shunt::conformance::packet
