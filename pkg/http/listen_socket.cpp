#include "http/listen_socket.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace shunt::http {
namespace {

constexpr int kBacklog = 128;

bool is_unspecified(const net::IpAddress& ip) { return ip == net::IpAddress{ip.family, {}}; }

void set_option(int fd, int level, int option, int to) {
  (void)::setsockopt(fd, level, option, &to, sizeof to);  // bind() tells what it led to
}

tl::unexpected<Error> failed(const char* what, const net::SocketAddress& address) {
  const int error = errno;
  const bool exhausted = error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
  const Errc code = error == EADDRINUSE                               ? Errc::Exists
                    : error == EADDRNOTAVAIL || error == EAFNOSUPPORT ? Errc::NotFound
                    : exhausted                                       ? Errc::Again
                                                                      : Errc::Denied;
  return fail(
      code,
      "listen tcp " + net::to_string(address) + ": " + what + ": " + std::strerror(error),
      error);
}

Result<UniqueFd> bound(const net::SocketAddress& address, bool v6_only) {
  const bool v4 = address.ip.family == net::Family::IPv4;
  UniqueFd fd(::socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) {
    return failed("socket", address);
  }
  // Connections of an earlier run that linger do not hold the port.
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  sockaddr_storage storage{};
  socklen_t size = 0;
  if (v4) {
    auto& raw = reinterpret_cast<sockaddr_in&>(storage);
    raw.sin_family = AF_INET;
    raw.sin_port = htons(net::number(address.port));
    std::memcpy(&raw.sin_addr, address.ip.bytes.data(), 4);
    size = sizeof raw;
  } else {
    set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, v6_only ? 1 : 0);
    auto& raw = reinterpret_cast<sockaddr_in6&>(storage);
    raw.sin6_family = AF_INET6;
    raw.sin6_port = htons(net::number(address.port));
    std::memcpy(&raw.sin6_addr, address.ip.bytes.data(), 16);
    size = sizeof raw;
  }
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&storage), size) != 0) {
    return failed("bind", address);
  }
  if (::listen(fd.get(), kBacklog) != 0) {
    return failed("listen", address);
  }
  return fd;
}

}  // namespace

std::string to_string(const ListenAddress& address) { return net::to_string(address.address); }

Result<UniqueFd> listen_on(const ListenAddress& address) {
  if (net::number(address.address.port) == 0) {
    return fail(Errc::Invalid, "listen tcp " + to_string(address) + ": no port is given");
  }
  if (address.stack == Stack::One || !is_unspecified(address.address.ip)) {
    return bound(address.address, true);
  }
  auto both = bound({net::IpAddress{net::Family::IPv6, {}}, address.address.port}, false);
  if (!both && both.error().code == Errc::NotFound) {
    return bound({net::IpAddress{}, address.address.port}, true);
  }
  return both;
}

}  // namespace shunt::http
