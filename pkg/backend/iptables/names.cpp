#include "backend/iptables/names.h"

#include <openssl/sha.h>

#include <array>
#include <cstdint>

namespace shunt::backend::iptables {
namespace {

constexpr std::string_view kPrefixes[] = {
    "KUBE-SVC-", "KUBE-SVL-", "KUBE-EXT-", "KUBE-FW-", "KUBE-SEP-"};

// The first 16 characters of the SHA-256 in base32 (RFC 4648).
std::string hash16(std::string_view text) {
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  constexpr std::size_t kLength = 16;
  std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest{};
  ::SHA256(reinterpret_cast<const std::uint8_t*>(text.data()), text.size(), digest.data());
  std::string out;
  unsigned bits = 0;
  unsigned count = 0;
  for (std::size_t i = 0; out.size() < kLength; ++i) {
    bits = (bits << 8 | digest[i]) & 0xfff;
    for (count += 8; count >= 5 && out.size() < kLength; count -= 5) {
      out.push_back(kAlphabet[bits >> (count - 5) & 0x1f]);
    }
  }
  return out;
}

std::string hashed(std::string_view prefix, const std::string& text) {
  return std::string(prefix) + hash16(text);
}

}  // namespace

std::string_view word(net::Protocol protocol) {
  switch (protocol) {
    case net::Protocol::Tcp:
      return "tcp";
    case net::Protocol::Udp:
      return "udp";
    case net::Protocol::Sctp:
      return "sctp";
  }
  return "";
}

std::string chain_of_port(PortChain kind, std::string_view service_port, net::Protocol protocol) {
  return hashed(
      kPrefixes[static_cast<std::size_t>(kind)], std::string(service_port).append(word(protocol)));
}

std::string chain_of_endpoint(
    std::string_view service_port, net::Protocol protocol, const net::SocketAddress& endpoint) {
  return hashed(
      kPrefixes[4],
      std::string(service_port).append(word(protocol)).append(net::to_string(endpoint)));
}

}  // namespace shunt::backend::iptables
