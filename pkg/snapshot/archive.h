// The binary form of a snapshot's objects: numbers as varints, texts with their length, texts that
// many objects share once and then by number. Pure.
//
// Encoder and Decoder have the same functions, so that objects.cpp says once what there is and in
// which order. A Decoder is given bytes that anybody may have written: after the first that cannot
// be, everything else it gives is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "net/ip_address.h"

namespace shunt::snapshot {

// Longer ones are not shared: a few bytes in a hostile file would otherwise become many.
inline constexpr std::size_t kMaxShared = 256;

class Encoder {
 public:
  static constexpr bool kReads = false;

  void number(std::uint64_t value);
  void signed_number(std::int64_t value);
  void number(std::int32_t value) { signed_number(value); }
  void flag(bool value) { out_ += value ? '\1' : '\0'; }
  void text(const std::string& value);
  void shared(const std::string& value);  // of those that many objects have
  void address(const net::IpAddress& value);

  const std::string& bytes() const { return out_; }
  void clear() { out_.clear(); }  // what is shared stays known

 private:
  std::string out_;
  std::unordered_map<std::string, std::uint64_t> known_;
};

class Decoder {
 public:
  static constexpr bool kReads = true;

  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}

  void number(std::uint64_t& value);
  void signed_number(std::int64_t& value);
  void number(std::int32_t& value);
  void flag(bool& value);
  void text(std::string& value);
  void shared(std::string& value);
  void address(net::IpAddress& value);

  // How many elements follow: never more than bytes are left, of which each takes one at least.
  std::size_t count();

  bool good() const { return good_; }
  bool at_end() const { return bytes_.empty(); }
  void spoil() { good_ = false; }  // what was read makes no sense

 private:
  std::string_view take(std::size_t size);

  std::string_view bytes_;
  bool good_ = true;
  std::vector<std::string> known_;
};

}  // namespace shunt::snapshot
