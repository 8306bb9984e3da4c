#include "snapshot/archive.h"

#include <cstring>
#include <limits>
#include <utility>

namespace shunt::snapshot {
namespace {

// Of a shared text: what follows is new and gets the next number, what follows stands for itself,
// or a number that was given before, counted from here.
constexpr std::uint64_t kNew = 0;
constexpr std::uint64_t kAlone = 1;
constexpr std::uint64_t kFirst = 2;

}  // namespace

void Encoder::number(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    out_ += static_cast<char>(value | 0x80);
  }
  out_ += static_cast<char>(value);
}

void Encoder::signed_number(std::int64_t value) {
  number(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
}

void Encoder::text(const std::string& value) {
  number(std::uint64_t{value.size()});
  out_ += value;
}

void Encoder::shared(const std::string& value) {
  if (value.size() > kMaxShared) {
    number(kAlone);
    text(value);
    return;
  }
  const auto [entry, is_new] = known_.try_emplace(value, known_.size() + kFirst);
  number(is_new ? kNew : entry->second);
  if (is_new) {
    text(value);
  }
}

void Encoder::address(const net::IpAddress& value) {
  flag(value.family == net::Family::IPv6);
  out_.append(reinterpret_cast<const char*>(value.bytes.data()), value.size());
}

std::string_view Decoder::take(std::size_t size) {
  if (!good_ || size > bytes_.size()) {
    good_ = false;
    return {};
  }
  const std::string_view out = bytes_.substr(0, size);
  bytes_.remove_prefix(size);
  return out;
}

void Decoder::number(std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::string_view byte = take(1);
    if (byte.empty()) {
      value = 0;
      return;
    }
    const auto bits = static_cast<std::uint8_t>(byte.front());
    value |= std::uint64_t{bits & 0x7fU} << shift;
    if (bits < 0x80) {
      return;
    }
  }
  good_ = false;
  value = 0;
}

void Decoder::signed_number(std::int64_t& value) {
  std::uint64_t bits = 0;
  number(bits);
  value = static_cast<std::int64_t>(bits >> 1 ^ (~(bits & 1) + 1));
}

void Decoder::number(std::int32_t& value) {
  std::int64_t wide = 0;
  signed_number(wide);
  good_ = good_ && std::in_range<std::int32_t>(wide);
  value = good_ ? static_cast<std::int32_t>(wide) : 0;
}

void Decoder::flag(bool& value) {
  const std::string_view byte = take(1);
  value = byte == std::string_view("\1", 1);
  good_ = good_ && (value || byte == std::string_view("\0", 1));
}

void Decoder::text(std::string& value) {
  std::uint64_t size = 0;
  number(size);
  value = take(static_cast<std::size_t>(
      std::min<std::uint64_t>(size, std::numeric_limits<std::size_t>::max())));
}

void Decoder::shared(std::string& value) {
  std::uint64_t which = 0;
  number(which);
  value.clear();
  if (!good_) {
    return;
  }
  if (which >= kFirst) {
    if (which - kFirst >= known_.size()) {
      good_ = false;
      return;
    }
    value = known_[static_cast<std::size_t>(which - kFirst)];
    return;
  }
  text(value);
  if (which == kNew) {
    good_ = good_ && value.size() <= kMaxShared;
    known_.push_back(value);
  }
}

void Decoder::address(net::IpAddress& value) {
  bool is_v6 = false;
  flag(is_v6);
  value = {is_v6 ? net::Family::IPv6 : net::Family::IPv4, {}};
  const std::string_view bytes = take(value.size());
  if (!bytes.empty()) {
    std::memcpy(value.bytes.data(), bytes.data(), bytes.size());
  }
}

std::size_t Decoder::count() {
  std::uint64_t value = 0;
  number(value);
  if (value > bytes_.size()) {
    good_ = false;
  }
  return good_ ? static_cast<std::size_t>(value) : 0;
}

}  // namespace shunt::snapshot
