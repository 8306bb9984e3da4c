#include "bench/suite/client.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <stdexcept>

#include "netns/sockets.h"

namespace shunt::bench {

UniqueFd open_client(net::Protocol protocol, bool blocking) {
  static const lab::RawAddress client =
      lab::to_raw(net::parse_socket_address("198.51.100.7:0").value());
  const int type = (protocol == net::Protocol::Udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC;
  UniqueFd fd(::socket(AF_INET, type | (blocking ? 0 : SOCK_NONBLOCK), 0));
  const int later = 1;
  const linger reset{1, 0};
  if (!fd || ::setsockopt(fd.get(), SOL_IP, IP_BIND_ADDRESS_NO_PORT, &later, sizeof later) != 0 ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset) != 0 ||
      ::bind(fd.get(), client.get(), client.length) != 0) {
    throw std::runtime_error("cannot open a client's socket");
  }
  return fd;
}

}  // namespace shunt::bench
