#include "netns/sockets.h"

#include <arpa/inet.h>

#include <cerrno>
#include <system_error>

#include "netns/netns.h"

namespace shunt::lab {
namespace {

void set_option(int fd, int level, int option, int value) {
  if (::setsockopt(fd, level, option, &value, sizeof value) != 0) {
    raise_errno("setsockopt");
  }
}

}  // namespace

int domain_of(net::Family family) { return family == net::Family::IPv4 ? AF_INET : AF_INET6; }

RawAddress to_raw(const net::SocketAddress& address) {
  RawAddress raw;
  if (address.ip.family == net::Family::IPv4) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(net::number(address.port));
    std::memcpy(&in.sin_addr, address.ip.bytes.data(), sizeof in.sin_addr);
    std::memcpy(&raw.storage, &in, sizeof in);
    raw.length = sizeof in;
  } else {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(net::number(address.port));
    std::memcpy(&in.sin6_addr, address.ip.bytes.data(), sizeof in.sin6_addr);
    std::memcpy(&raw.storage, &in, sizeof in);
    raw.length = sizeof in;
  }
  return raw;
}

net::IpAddress ip_from_bytes(net::Family family, const void* bytes) {
  net::IpAddress ip;
  ip.family = family;
  std::memcpy(ip.bytes.data(), bytes, ip.size());
  return ip;
}

net::SocketAddress from_raw(const RawAddress& raw) {
  net::SocketAddress address;
  if (raw.storage.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &raw.storage, sizeof in);
    address.ip = ip_from_bytes(net::Family::IPv4, &in.sin_addr);
    address.port = net::Port{ntohs(in.sin_port)};
  } else {
    sockaddr_in6 in{};
    std::memcpy(&in, &raw.storage, sizeof in);
    address.ip = ip_from_bytes(net::Family::IPv6, &in.sin6_addr);
    address.port = net::Port{ntohs(in.sin6_port)};
  }
  return address;
}

net::SocketAddress local_address(int fd) {
  RawAddress raw;
  raw.length = sizeof raw.storage;
  if (::getsockname(fd, raw.get(), &raw.length) != 0) {
    raise_errno("getsockname");
  }
  return from_raw(raw);
}

net::SocketAddress peer_address(int fd) {
  RawAddress raw;
  raw.length = sizeof raw.storage;
  if (::getpeername(fd, raw.get(), &raw.length) != 0) {
    return {};  // gone already
  }
  return from_raw(raw);
}

UniqueFd open_socket(net::Protocol protocol, net::Family family) {
  const int type = protocol == net::Protocol::Udp ? SOCK_DGRAM : SOCK_STREAM;
  UniqueFd fd(::socket(domain_of(family), type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) {
    raise_errno("socket");
  }
  if (family == net::Family::IPv6) {
    set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  }
  return fd;
}

void make_transparent(int fd, net::Family family) {
  if (family == net::Family::IPv4) {
    set_option(fd, SOL_IP, IP_TRANSPARENT, 1);
  } else {
    set_option(fd, SOL_IPV6, IPV6_TRANSPARENT, 1);
  }
}

void bind_to(int fd, const net::SocketAddress& address) {
  const RawAddress raw = to_raw(address);
  if (::bind(fd, raw.get(), raw.length) != 0) {
    raise_errno("cannot bind " + net::to_string(address));
  }
}

UniqueFd open_listener(net::Protocol protocol, const net::SocketAddress& address) {
  UniqueFd fd = open_socket(protocol, address.ip.family);
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  bind_to(fd.get(), address);
  if (protocol != net::Protocol::Udp && ::listen(fd.get(), 1024) != 0) {
    raise_errno("cannot listen on " + net::to_string(address));
  }
  return fd;
}

}  // namespace shunt::lab
