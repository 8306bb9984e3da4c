#include "net/socket_address.h"

#include <charconv>

namespace shunt::net {

std::string_view to_string(Protocol protocol) {
  switch (protocol) {
    case Protocol::Tcp:
      return "TCP";
    case Protocol::Udp:
      return "UDP";
    case Protocol::Sctp:
      return "SCTP";
  }
  return "?";
}

std::optional<Protocol> parse_protocol(std::string_view text) {
  for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp, Protocol::Sctp}) {
    if (text == to_string(protocol)) {
      return protocol;
    }
  }
  return std::nullopt;
}

std::string to_string(const SocketAddress& address) {
  const std::string ip = to_string(address.ip);
  const std::string port = std::to_string(number(address.port));
  return address.ip.family == Family::IPv6 ? "[" + ip + "]:" + port : ip + ":" + port;
}

std::optional<SocketAddress> parse_socket_address(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
  }
  const auto ip = parse_ip(host);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (!ip || bracketed != (ip->family == Family::IPv6) || digits.empty() || error != std::errc() ||
      end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return SocketAddress{*ip, Port{port}};
}

}  // namespace shunt::net
