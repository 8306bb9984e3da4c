// Ports, protocols and the pair of address and port. Host byte order: htons() happens in wire files
// and nowhere else.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "net/ip_address.h"

namespace shunt::net {

// The values are the IP protocol numbers.
enum class Protocol : std::uint8_t { Tcp = 6, Udp = 17, Sctp = 132 };
std::string_view to_string(Protocol protocol);                  // "TCP"
std::optional<Protocol> parse_protocol(std::string_view text);  // exactly as the API writes it

enum class Port : std::uint16_t {};
inline std::uint16_t number(Port port) { return static_cast<std::uint16_t>(port); }

struct SocketAddress {
  IpAddress ip;
  Port port{};
  auto operator<=>(const SocketAddress&) const = default;
};
std::string to_string(const SocketAddress& address);  // "10.0.0.1:80", "[fd00::1]:80"
// Accepts what to_string prints.
std::optional<SocketAddress> parse_socket_address(std::string_view text);

}  // namespace shunt::net

template <>
struct std::hash<shunt::net::SocketAddress> {
  std::size_t operator()(const shunt::net::SocketAddress& a) const {
    return hash_value(a.ip) * 31 + shunt::net::number(a.port);
  }
};
