// For tests: a peer that says exactly what it is told, and a port that is free.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "net/socket_address.h"

namespace shunt::http::testing {

struct Reply {
  int status = 0;
  std::string head;  // all of it
  std::string body;
  // "" when absent; names as the server writes them.
  std::string header(const std::string& name) const {
    const std::size_t at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) {
      return "";
    }
    const std::size_t start = at + name.size() + 4;
    return head.substr(start, head.find("\r\n", start) - start);
  }
};

class Peer {
 public:
  explicit Peer(const net::SocketAddress& to)
      : fd_(::socket(to.ip.family == net::Family::IPv4 ? AF_INET : AF_INET6, SOCK_STREAM, 0)) {
    const timeval patience{5, 0};
    (void)::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_storage storage{};
    socklen_t size = 0;
    if (to.ip.family == net::Family::IPv4) {
      auto& raw = reinterpret_cast<sockaddr_in&>(storage);
      raw.sin_family = AF_INET;
      raw.sin_port = htons(net::number(to.port));
      std::memcpy(&raw.sin_addr, to.ip.bytes.data(), 4);
      size = sizeof raw;
    } else {
      auto& raw = reinterpret_cast<sockaddr_in6&>(storage);
      raw.sin6_family = AF_INET6;
      raw.sin6_port = htons(net::number(to.port));
      std::memcpy(&raw.sin6_addr, to.ip.bytes.data(), 16);
      size = sizeof raw;
    }
    connected_ = ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&storage), size) == 0;
  }
  bool connected() const { return connected_; }
  int fd() const { return fd_.get(); }
  bool say(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0) {
        return false;
      }
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // Everything up to the end; nothing when there is none within five seconds, or a reset.
  std::optional<std::string> hear() {
    std::string out;
    char buffer[4096];
    for (;;) {
      const ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, 0);
      if (got < 0) {
        return std::nullopt;
      }
      if (got == 0) {
        return out;
      }
      out.append(buffer, static_cast<std::size_t>(got));
    }
  }

 private:
  UniqueFd fd_;
  bool connected_ = false;
};

// Nothing: nobody listens, or no answer.
inline std::optional<Reply> ask(const net::SocketAddress& to, std::string_view request) {
  Peer peer(to);
  if (!peer.connected() || !peer.say(request)) {
    return std::nullopt;
  }
  const auto bytes = peer.hear();
  const std::size_t end = bytes ? bytes->find("\r\n\r\n") : std::string::npos;
  if (end == std::string::npos || !bytes->starts_with("HTTP/1.1 ")) {
    return std::nullopt;
  }
  Reply reply;
  reply.status = std::stoi(bytes->substr(9, 3));
  reply.head = bytes->substr(0, end + 2);
  reply.body = bytes->substr(end + 4);
  return reply;
}

inline std::optional<Reply> get(const net::SocketAddress& to, const std::string& target) {
  return ask(to, "GET " + target + " HTTP/1.1\r\nHost: test\r\n\r\n");
}

inline net::SocketAddress on_loopback(net::Port port) {
  return {net::IpAddress{net::Family::IPv4, {127, 0, 0, 1}}, port};
}

// Nobody had it a moment ago.
inline net::Port free_port() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in raw{};
  raw.sin_family = AF_INET;
  socklen_t size = sizeof raw;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&raw), size) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&raw), &size) != 0) {
    throw std::runtime_error("no free port");
  }
  return net::Port{ntohs(raw.sin_port)};
}

}  // namespace shunt::http::testing
