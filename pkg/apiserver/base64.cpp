#include "apiserver/base64.h"

#include <cstdint>

namespace shunt::apiserver {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::uint32_t byte_at(std::string_view bytes, std::size_t i) {
  return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U;
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t group =
        byte_at(bytes, i) << 16U | byte_at(bytes, i + 1) << 8U | byte_at(bytes, i + 2);
    out += kAlphabet[group >> 18U];
    out += kAlphabet[group >> 12U & 63U];
    out += i + 1 < bytes.size() ? kAlphabet[group >> 6U & 63U] : '=';
    out += i + 2 < bytes.size() ? kAlphabet[group & 63U] : '=';
  }
  return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::string out;
  std::uint32_t group = 0;
  std::size_t digits = 0;
  std::size_t padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      continue;
    }
    const auto value = kAlphabet.find(c);
    if (c == '=') {
      ++padding;
    } else if (value == std::string_view::npos || padding > 0) {
      return std::nullopt;
    } else {
      group |= static_cast<std::uint32_t>(value);
    }
    if (++digits % 4 == 0) {
      out += static_cast<char>(group >> 16U & 255U);
      out += static_cast<char>(group >> 8U & 255U);
      out += static_cast<char>(group & 255U);
      group = 0;
    } else {
      group <<= 6U;
    }
  }
  if (digits % 4 != 0 || padding > 2) {
    return std::nullopt;
  }
  out.resize(out.size() - padding);
  return out;
}

}  // namespace shunt::apiserver
