// The times of the API: RFC 3339 with seconds, an optional fraction and a zone.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shunt::kube {

struct Timestamp {
  std::int64_t seconds = 0;  // Unix time
  std::int32_t nanos = 0;    // 0..999'999'999, always forward from `seconds`
  bool operator==(const Timestamp&) const = default;
};

// "2026-11-29T16:44:49Z", "2026-11-29T17:44:49.123+01:00". Digits after the ninth are dropped.
std::optional<Timestamp> parse_rfc3339(std::string_view text);

// 0 for nothing, and for times that do not fit (before 1678 or after 2262).
std::int64_t unix_nanoseconds(const std::optional<Timestamp>& time);

}  // namespace shunt::kube
