#include "kube/utf8.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/utf8.h"

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

}  // namespace

bool is_utf8(std::string_view bytes) {
  for (;;) {
    bytes.remove_prefix(ascii_prefix(bytes));
    if (bytes.empty()) {
      return true;
    }
    const std::size_t length = utf8_length(bytes);
    if (length == 0) {
      return false;
    }
    bytes.remove_prefix(length);
  }
}

}  // namespace shunt::kube
