// Socket addresses between the values of net/ and the kernel's structures, and sockets that are
// ready to use. Failures throw, as everywhere in the lab.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <string>

#include "base/unique_fd.h"
#include "net/socket_address.h"

namespace shunt::lab {

struct RawAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

RawAddress to_raw(const net::SocketAddress& address);
net::SocketAddress from_raw(const RawAddress& raw);
net::IpAddress ip_from_bytes(net::Family family, const void* bytes);
int domain_of(net::Family family);

net::SocketAddress local_address(int fd);
net::SocketAddress peer_address(int fd);

// Non-blocking and close-on-exec, in the calling thread's namespace; TCP or UDP.
UniqueFd open_socket(net::Protocol protocol, net::Family family);
// May use an address that the namespace does not hold (needs CAP_NET_ADMIN).
void make_transparent(int fd, net::Family family);
void bind_to(int fd, const net::SocketAddress& address);
// Bound, with SO_REUSEADDR; TCP listens.
UniqueFd open_listener(net::Protocol protocol, const net::SocketAddress& address);

}  // namespace shunt::lab
