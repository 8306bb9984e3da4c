// FNV-1a, 64 bits: for telling our own texts apart. Nobody attacks it, and nobody may rely on it
// against an attacker.
#pragma once

#include <cstdint>
#include <string_view>

namespace shunt {

class Fnv1a {
 public:
  void byte(std::uint8_t value) { state_ = (state_ ^ value) * 0x100000001b3ULL; }
  void bytes(std::string_view text) {
    for (const char c : text) {
      byte(static_cast<std::uint8_t>(c));
    }
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace shunt
