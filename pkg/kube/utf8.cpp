#include "kube/utf8.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace shunt::kube {
namespace {

// Eight bytes at a time: nearly all text of the API is ASCII.
std::size_t ascii_prefix(std::string_view bytes) {
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    if ((word & 0x8080808080808080ULL) != 0) {
      break;
    }
  }
  while (at < bytes.size() && static_cast<unsigned char>(bytes[at]) < 0x80) {
    ++at;
  }
  return at;
}

// Of a character that is not ASCII; 0 when it is malformed. The bounds of the second byte exclude
// overlong forms (E0, F0), surrogates (ED) and what lies above U+10FFFF (F4).
std::size_t length_of_character(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = byte(0);
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || bytes.size() < length) {
    return 0;
  }
  const unsigned least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < least || byte(1) > most) {
    return 0;
  }
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) {
      return 0;
    }
  }
  return length;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  for (;;) {
    bytes.remove_prefix(ascii_prefix(bytes));
    if (bytes.empty()) {
      return true;
    }
    const std::size_t length = length_of_character(bytes);
    if (length == 0) {
      return false;
    }
    bytes.remove_prefix(length);
  }
}

}  // namespace shunt::kube
