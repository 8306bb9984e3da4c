// Netlink attributes as typed, bounded reads: nothing here trusts a length that the bytes do not
// bear out.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace shunt::netlink {

using AttributeBytes = std::span<const std::uint8_t>;

// Calls `each(type, payload)` for every attribute in `bytes`; stops at the first that does not fit.
template <typename Each>
void for_each_attribute(AttributeBytes bytes, const Each& each) {
  constexpr std::size_t kHeader = 4;
  constexpr std::uint16_t kTypeMask = 0x3fff;  // without NLA_F_NESTED and NLA_F_NET_BYTEORDER
  while (bytes.size() >= kHeader) {
    std::uint16_t length = 0;
    std::uint16_t type = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    std::memcpy(&type, bytes.data() + sizeof length, sizeof type);
    if (length < kHeader || length > bytes.size()) {
      return;
    }
    each(static_cast<std::uint16_t>(type & kTypeMask), bytes.subspan(kHeader, length - kHeader));
    const std::size_t step = (std::size_t{length} + 3) & ~std::size_t{3};
    if (step >= bytes.size()) {
      return;
    }
    bytes = bytes.subspan(step);
  }
}

inline std::optional<AttributeBytes> find_attribute(AttributeBytes bytes, std::uint16_t wanted) {
  std::optional<AttributeBytes> found;
  for_each_attribute(bytes, [&](std::uint16_t type, AttributeBytes payload) {
    if (type == wanted) {
      found = payload;
    }
  });
  return found;
}

// Text up to the first NUL, or all of it.
inline std::string_view attribute_text(AttributeBytes payload) {
  const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
  return text.substr(0, text.find('\0'));
}

inline std::uint32_t attribute_be32(AttributeBytes payload) {
  if (payload.size() < 4) {
    return 0;
  }
  return std::uint32_t{payload[0]} << 24 | std::uint32_t{payload[1]} << 16 |
         std::uint32_t{payload[2]} << 8 | std::uint32_t{payload[3]};
}

inline std::uint64_t attribute_be64(AttributeBytes payload) {
  if (payload.size() < 8) {
    return 0;
  }
  return std::uint64_t{attribute_be32(payload)} << 32 | attribute_be32(payload.subspan(4));
}

}  // namespace shunt::netlink
