// The bytes of Packed: numbers as varints, names by their place in the object's own dictionary,
// texts in the shortest form that gives the same text again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/ip_address.h"
#include "store/name_pool.h"

namespace shunt::store {

using ByteVector = std::vector<std::uint8_t>;

class Packer {
 public:
  explicit Packer(NamePool& names) : names_(names) {
    dictionary_.reserve(32);  // as much as most objects need
    body_.reserve(512);
  }

  void number(std::uint64_t value) { put_varint(body_, value); }
  void signed_number(std::int64_t value) {  // zigzag: small negative numbers are short too
    number(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
  }
  void flags(std::uint8_t bits) { body_.push_back(bits); }
  void name(std::string_view name);  // of those that many objects share
  void text(std::string_view text);  // UIDs, decimal versions, addresses; anything else as it is
  void address(const net::IpAddress& ip);

  // The dictionary and then everything that was put.
  ByteVector take();

 private:
  static void put_varint(ByteVector& out, std::uint64_t value);
  void raw(const void* data, std::size_t size);

  NamePool& names_;
  std::vector<NamePool::Id> dictionary_;
  ByteVector body_;
};

// Reads what a Packer wrote; there are no other bytes, so nothing is checked.
class Unpacker {
 public:
  Unpacker(std::span<const std::uint8_t> bytes, const NamePool& names);

  std::uint64_t number();
  std::int64_t signed_number() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1 ^ (~(value & 1) + 1));
  }
  std::uint8_t flags() { return *at_++; }
  const std::string& name();
  std::string text();
  net::IpAddress address(net::Family family);

  std::span<const NamePool::Id> dictionary() const { return dictionary_; }

 private:
  const NamePool& names_;
  std::vector<NamePool::Id> dictionary_;
  const std::uint8_t* at_;
};

}  // namespace shunt::store
