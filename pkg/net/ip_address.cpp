#include "net/ip_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace shunt::net {
namespace {

std::optional<IpAddress> parse_v4(std::string_view text) {
  IpAddress ip;
  std::size_t octet = 0;
  std::size_t digits = 0;
  unsigned value = 0;
  for (const char c : text) {
    if (c == '.') {
      if (digits == 0 || octet == 3) {
        return std::nullopt;
      }
      ip.bytes[octet++] = static_cast<std::uint8_t>(value);
      digits = 0;
      value = 0;
      continue;
    }
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    value = value * 10 + static_cast<unsigned>(c - '0');
    ++digits;
    if (value > 255 || digits > 16) {
      return std::nullopt;
    }
  }
  if (digits == 0 || octet != 3) {
    return std::nullopt;
  }
  ip.bytes[3] = static_cast<std::uint8_t>(value);
  return ip;
}

std::optional<IpAddress> parse_v6(std::string_view text) {
  char buffer[INET6_ADDRSTRLEN];
  // Only a dotted tail can be longer than canonical text; zero-padded octets there are nobody's
  // habit.
  if (text.size() >= sizeof buffer) {
    return std::nullopt;
  }
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = '\0';
  IpAddress ip{Family::IPv6, {}};
  if (text.find('\0') != std::string_view::npos ||
      ::inet_pton(AF_INET6, buffer, ip.bytes.data()) != 1) {
    return std::nullopt;
  }
  constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::equal(kMapped.begin(), kMapped.end(), ip.bytes.begin())) {
    IpAddress v4;
    std::copy_n(ip.bytes.begin() + 12, 4, v4.bytes.begin());
    return v4;
  }
  return ip;
}

}  // namespace

std::string_view to_string(Family family) { return family == Family::IPv4 ? "IPv4" : "IPv6"; }

std::optional<IpAddress> parse_ip(std::string_view text) {
  return text.find(':') == std::string_view::npos ? parse_v4(text) : parse_v6(text);
}

std::string to_string(const IpAddress& ip) {
  char buffer[INET6_ADDRSTRLEN];
  const int af = ip.family == Family::IPv4 ? AF_INET : AF_INET6;
  return ::inet_ntop(af, ip.bytes.data(), buffer, sizeof buffer);
}

bool is_loopback(const IpAddress& ip) {
  if (ip.family == Family::IPv4) {
    return ip.bytes[0] == 127;
  }
  return ip.bytes[15] == 1 &&
         std::all_of(ip.bytes.begin(), ip.bytes.begin() + 15, [](auto b) { return b == 0; });
}

bool is_link_local(const IpAddress& ip) {
  return ip.family == Family::IPv6 && ip.bytes[0] == 0xfe && (ip.bytes[1] & 0xc0) == 0x80;
}

std::size_t hash_value(const IpAddress& ip) {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  std::memcpy(&high, ip.bytes.data(), 8);
  std::memcpy(&low, ip.bytes.data() + 8, 8);
  // Addresses of one cluster differ in few bits; a multiplication spreads them (splitmix64's
  // constants).
  std::uint64_t mixed = (high ^ (low * 0x9e3779b97f4a7c15ULL)) * 0xbf58476d1ce4e5b9ULL;
  mixed ^= mixed >> 31;
  return static_cast<std::size_t>(mixed);
}

}  // namespace shunt::net
