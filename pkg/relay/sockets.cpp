#include "relay/sockets.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstring>

namespace shunt::relay {
namespace {

constexpr int kBacklog = 256;
// A client waits for an endpoint that does not answer 15 s (four SYNs), not two minutes.
constexpr int kSynRetries = 3;

struct RawAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

RawAddress raw(const net::SocketAddress& address) {
  RawAddress out;
  if (address.ip.family == net::Family::IPv4) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(out.storage);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(net::number(address.port));
    std::memcpy(&v4.sin_addr, address.ip.bytes.data(), 4);
    out.size = sizeof v4;
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(out.storage);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(net::number(address.port));
    std::memcpy(&v6.sin6_addr, address.ip.bytes.data(), 16);
    out.size = sizeof v6;
  }
  return out;
}

net::SocketAddress value(const RawAddress& address) {
  net::SocketAddress out;
  if (address.storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
    std::memcpy(out.ip.bytes.data(), &v4.sin_addr, 4);
    out.port = net::Port{ntohs(v4.sin_port)};
  } else {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
    out.ip.family = net::Family::IPv6;
    std::memcpy(out.ip.bytes.data(), &v6.sin6_addr, 16);
    out.port = net::Port{ntohs(v6.sin6_port)};
  }
  return out;
}

tl::unexpected<Error> failed(const char* what) {
  const int error = errno;
  const bool exhausted = error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
  const Errc code = error == EADDRINUSE            ? Errc::Exists
                    : exhausted || error == EAGAIN ? Errc::Again
                                                   : Errc::Denied;
  return fail(code, std::string(what) + ": " + std::strerror(error), error);
}

void set_option(int fd, int level, int option, int to) {
  (void)::setsockopt(fd, level, option, &to, sizeof to);  // only makes the socket nicer
}

UniqueFd make_socket(net::Family family, net::Protocol protocol) {
  const bool tcp = protocol == net::Protocol::Tcp;
  return UniqueFd(::socket(
      family == net::Family::IPv4 ? AF_INET : AF_INET6,
      (tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC,
      0));
}

void make_lasting(int fd) {
  set_option(
      fd, SOL_SOCKET, SO_KEEPALIVE, 1);  // a peer that is gone must not hold a place for ever
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);  // whoever sends decides what belongs together
}

}  // namespace

net::IpAddress loopback(net::Family family) {
  net::IpAddress ip{family, {}};
  if (family == net::Family::IPv4) {
    ip.bytes = {127, 0, 0, 1};
  } else {
    ip.bytes.back() = 1;
  }
  return ip;
}

Result<UniqueFd> listen_on(const net::SocketAddress& address, net::Protocol protocol) {
  UniqueFd fd = make_socket(address.ip.family, protocol);
  if (!fd) {
    return failed("socket");
  }
  if (address.ip.family == net::Family::IPv6) {
    set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  }
  const bool tcp = protocol == net::Protocol::Tcp;
  if (tcp) {
    // Connections of an earlier run that linger do not hold the port. For UDP the option would let
    // two sockets share it.
    set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  }
  const RawAddress to = raw(address);
  if (::bind(fd.get(), to.get(), to.size) != 0) {
    return failed("bind");
  }
  if (tcp && ::listen(fd.get(), kBacklog) != 0) {
    return failed("listen");
  }
  return fd;
}

Result<UniqueFd> connect_to(const net::SocketAddress& address, net::Protocol protocol) {
  UniqueFd fd = make_socket(address.ip.family, protocol);
  if (!fd) {
    return failed("socket");
  }
  if (protocol == net::Protocol::Tcp) {
    make_lasting(fd.get());
    set_option(fd.get(), IPPROTO_TCP, TCP_SYNCNT, kSynRetries);
  }
  const RawAddress to = raw(address);
  if (::connect(fd.get(), to.get(), to.size) != 0 && errno != EINPROGRESS) {
    return failed("connect");
  }
  return fd;
}

int connect_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

Result<UniqueFd> accept_from(int listener) {
  UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd) {
    return failed("accept");
  }
  make_lasting(fd.get());
  return fd;
}

void reset_on_close(int fd) {
  const linger at_once{1, 0};
  (void)::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);  // else it ends politely
}

std::optional<std::size_t> receive_from(int fd, std::span<char> buffer, net::SocketAddress& from) {
  RawAddress address;
  const ssize_t got = ::recvfrom(fd, buffer.data(), buffer.size(), 0, address.get(), &address.size);
  if (got < 0) {
    return std::nullopt;
  }
  from = value(address);
  return static_cast<std::size_t>(got);
}

void send_to(int fd, std::span<const char> datagram, const net::SocketAddress& to) {
  const RawAddress address = raw(to);
  // A full buffer loses the datagram, as the network would.
  (void)::sendto(fd, datagram.data(), datagram.size(), 0, address.get(), address.size);
}

}  // namespace shunt::relay
