#include "test/apiserver/load_names.h"

#include <fmt/format.h>

#include "base/fnv1a.h"
#include "test/apiserver/identifiers.h"

namespace shunt::test_api {
namespace {

std::string ipv4(std::uint32_t base, std::size_t number) {
  const std::uint32_t address = base + static_cast<std::uint32_t>(number);
  return fmt::format(
      "{}.{}.{}.{}",
      address >> 24U,
      (address >> 16U) & 0xffU,
      (address >> 8U) & 0xffU,
      address & 0xffU);
}

// Canonical text: no part is left out that would have to be, since number is never 0.
std::string ipv6(std::string_view prefix, std::size_t number) {
  return number < 0x10000 ? fmt::format("{}::{:x}", prefix, number)
                          : fmt::format("{}::{:x}:{:x}", prefix, number >> 16U, number & 0xffffU);
}

}  // namespace

std::uint64_t mixed(std::uint64_t seed, std::uint64_t number) {
  // splitmix64: neighbouring numbers share nothing.
  std::uint64_t z = seed * 0x9e3779b97f4a7c15U + number + 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

std::uint64_t mixed(std::uint64_t seed, std::string_view text) {
  Fnv1a hash;
  hash.bytes(text);
  return mixed(seed, hash.value());
}

std::string uid_of(std::uint64_t seed) { return uuid(mixed(seed, 1), mixed(seed, 2)); }

std::string suffix_of(std::uint64_t seed, std::size_t size) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string out;
  for (std::uint64_t rest = seed; out.size() < size; rest = mixed(rest, 1)) {
    out += kLetters[rest % kLetters.size()];
  }
  return out;
}

std::string cluster_ip(std::string_view family, std::size_t number) {
  return family == "IPv6" ? ipv6("fd00:10:96", number) : ipv4(0x0a600000U, number);
}

std::string pod_ip(std::string_view family, std::size_t number) {
  return family == "IPv6" ? ipv6("fd00:10:128", number) : ipv4(0x0a800000U, number);
}

}  // namespace shunt::test_api
