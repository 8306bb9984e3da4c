#include "store/packer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace shunt::store {
namespace {

enum class Form : std::uint8_t { Text, Uuid, Decimal, IPv4, IPv6 };

constexpr std::size_t kUuidLength = 36;

bool is_dash(std::size_t at) { return at == 8 || at == 13 || at == 18 || at == 23; }

std::optional<unsigned> hex(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  return c >= 'a' && c <= 'f' ? std::optional<unsigned>(c - 'a' + 10) : std::nullopt;
}

// Lower case only: the text must come back as it was.
std::optional<std::array<std::uint8_t, 16>> parse_uuid(std::string_view text) {
  if (text.size() != kUuidLength) {
    return std::nullopt;
  }
  std::array<std::uint8_t, 16> out{};
  std::size_t digits = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (is_dash(at)) {
      if (text[at] != '-') {
        return std::nullopt;
      }
      continue;
    }
    const auto digit = hex(text[at]);
    if (!digit) {
      return std::nullopt;
    }
    out[digits / 2] = static_cast<std::uint8_t>(unsigned{out[digits / 2]} << 4U | *digit);
    ++digits;
  }
  return out;
}

std::string uuid_text(const std::uint8_t* bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(kUuidLength, '-');
  std::size_t digits = 0;
  for (std::size_t at = 0; at < kUuidLength; ++at) {
    if (!is_dash(at)) {
      const std::uint8_t byte = bytes[digits / 2];
      text[at] = kDigits[digits % 2 == 0 ? byte >> 4 : byte & 15];
      ++digits;
    }
  }
  return text;
}

std::optional<std::uint64_t> parse_decimal(std::string_view text) {
  std::uint64_t value = 0;
  const bool canonical = !text.empty() && text.size() <= 19 && (text[0] != '0' || text == "0");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return canonical && error == std::errc() && end == text.data() + text.size()
             ? std::optional(value)
             : std::nullopt;
}

std::optional<net::IpAddress> parse_address(std::string_view text) {
  const bool may_be = !text.empty() && text.size() <= 45 &&
                      text.find_first_not_of("0123456789abcdef.:") == std::string_view::npos &&
                      text.find_first_of(".:") != std::string_view::npos;
  const auto ip = may_be ? net::parse_ip(text) : std::nullopt;
  return ip && net::to_string(*ip) == text ? ip : std::nullopt;
}

std::uint64_t read_varint(const std::uint8_t*& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint8_t byte = *at++;
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) {
      return value;
    }
  }
}

}  // namespace

void Packer::put_varint(ByteVector& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    out.push_back(static_cast<std::uint8_t>(value | 0x80));
  }
  out.push_back(static_cast<std::uint8_t>(value));
}

void Packer::raw(const void* data, std::size_t size) {
  const std::size_t at = body_.size();
  body_.resize(at + size);
  if (size > 0) {
    std::memcpy(body_.data() + at, data, size);
  }
}

void Packer::name(std::string_view name) {
  // Neighbours in a slice share a handful of names, so a look from the back is short; the
  // dictionary of a slice with a thousand nodes is not worth searching, and a name twice in it does
  // no harm.
  constexpr std::size_t kLook = 16;
  const std::size_t first = dictionary_.size() - std::min(dictionary_.size(), kLook);
  for (std::size_t at = dictionary_.size(); at > first; --at) {
    if (names_.name(dictionary_[at - 1]) == name) {
      number(at - 1);
      return;
    }
  }
  number(dictionary_.size());
  dictionary_.push_back(names_.acquire(name));
}

void Packer::text(std::string_view text) {
  if (const auto value = parse_decimal(text)) {
    flags(static_cast<std::uint8_t>(Form::Decimal));
    number(*value);
  } else if (const auto uuid = parse_uuid(text)) {
    flags(static_cast<std::uint8_t>(Form::Uuid));
    raw(uuid->data(), uuid->size());
  } else if (const auto ip = parse_address(text)) {
    flags(static_cast<std::uint8_t>(ip->family == net::Family::IPv4 ? Form::IPv4 : Form::IPv6));
    address(*ip);
  } else {
    flags(static_cast<std::uint8_t>(Form::Text));
    number(text.size());
    raw(text.data(), text.size());
  }
}

void Packer::address(const net::IpAddress& ip) { raw(ip.bytes.data(), ip.size()); }

ByteVector Packer::take() {
  ByteVector out;
  out.reserve(body_.size() + 4 * dictionary_.size() + 4);
  put_varint(out, dictionary_.size());
  for (const NamePool::Id id : dictionary_) {
    put_varint(out, id);
  }
  out.insert(out.end(), body_.begin(), body_.end());
  dictionary_.clear();
  body_.clear();
  return out;
}

Unpacker::Unpacker(std::span<const std::uint8_t> bytes, const NamePool& names)
    : names_(names), at_(bytes.data()) {
  dictionary_.resize(read_varint(at_));
  for (NamePool::Id& id : dictionary_) {
    id = static_cast<NamePool::Id>(read_varint(at_));
  }
}

std::uint64_t Unpacker::number() { return read_varint(at_); }

const std::string& Unpacker::name() { return names_.name(dictionary_[number()]); }

std::string Unpacker::text() {
  switch (static_cast<Form>(flags())) {
    case Form::Decimal:
      return std::to_string(number());
    case Form::Uuid: {
      std::string text = uuid_text(at_);
      at_ += 16;
      return text;
    }
    case Form::IPv4:
      return net::to_string(address(net::Family::IPv4));
    case Form::IPv6:
      return net::to_string(address(net::Family::IPv6));
    case Form::Text:
      break;
  }
  const std::size_t size = number();
  std::string text(reinterpret_cast<const char*>(at_), size);
  at_ += size;
  return text;
}

net::IpAddress Unpacker::address(net::Family family) {
  net::IpAddress ip{family, {}};
  std::memcpy(ip.bytes.data(), at_, ip.size());
  at_ += ip.size();
  return ip;
}

}  // namespace shunt::store
