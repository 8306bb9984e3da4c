// An IP address as a value: family and bytes. Parsing is "sloppy" as kube-proxy's is
// (spec/config.md §2): decimal IPv4 octets may have leading zeros and are never octal; an
// IPv4-mapped IPv6 address counts as IPv4. Zones are refused.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace shunt::net {

enum class Family : std::uint8_t { IPv4, IPv6 };
std::string_view to_string(Family family);  // "IPv4", "IPv6": the words of the Kubernetes API

struct IpAddress {
  Family family = Family::IPv4;
  std::array<std::uint8_t, 16>
      bytes{};  // network order; IPv4 uses the first four, the rest stay zero

  std::size_t size() const { return family == Family::IPv4 ? 4 : 16; }
  auto operator<=>(const IpAddress&) const = default;
};

std::optional<IpAddress> parse_ip(std::string_view text);
std::string to_string(const IpAddress& ip);  // canonical text (RFC 5952 for IPv6)
bool is_loopback(const IpAddress& ip);
// fe80::/10: exists once a device, so that it names no place without one.
bool is_link_local(const IpAddress& ip);
std::size_t hash_value(const IpAddress& ip);

}  // namespace shunt::net

template <>
struct std::hash<shunt::net::IpAddress> {
  std::size_t operator()(const shunt::net::IpAddress& ip) const { return hash_value(ip); }
};
