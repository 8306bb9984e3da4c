#include "test/apiserver/identifiers.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <random>

namespace shunt::test_api {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::uint64_t random_word() {
  static std::mutex mutex;
  static std::mt19937_64 engine{std::random_device{}()};
  const std::lock_guard lock(mutex);
  return engine();
}

}  // namespace

std::string uuid(std::uint64_t a, std::uint64_t b) {
  return fmt::format(
      "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
      a >> 32U,
      (a >> 16U) & 0xffffU,
      a & 0xfffU,
      0x8000U | ((b >> 48U) & 0x3fffU),
      b & 0xffffffffffffU);
}

std::string new_uid() {
  const std::uint64_t first = random_word();
  return uuid(first, random_word());
}

std::string random_hex(int digits) {
  std::string out;
  while (out.size() < static_cast<std::size_t>(digits)) {
    out += fmt::format("{:016x}", random_word());
  }
  out.resize(static_cast<std::size_t>(digits));
  return out;
}

std::string random_suffix() {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string out;
  for (int i = 0; i < 5; ++i) {
    out += kLetters[random_word() % kLetters.size()];
  }
  return out;
}

std::string now_rfc3339() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  (void)::gmtime_r(&now, &utc);  // fails only for years beyond int
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {text.data(), size};
}

std::string base64url(std::string_view bytes) {
  std::string out;
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : bytes) {
    bits = (bits << 8U) | static_cast<unsigned char>(c);
    for (count += 8; count >= 6; count -= 6) {
      out += kBase64[(bits >> (count - 6)) & 0x3fU];
    }
  }
  if (count > 0) {
    out += kBase64[(bits << (6 - count)) & 0x3fU];
  }
  return out;
}

std::string base64url_decoded(std::string_view text, bool& ok) {
  std::string out;
  std::uint32_t bits = 0;
  unsigned count = 0;
  ok = true;
  for (const char c : text) {
    const std::size_t value = kBase64.find(c);
    if (value == std::string_view::npos) {
      ok = false;
      return {};
    }
    bits = (bits << 6U) | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>((bits >> count) & 0xffU);
    }
  }
  return out;
}

}  // namespace shunt::test_api
