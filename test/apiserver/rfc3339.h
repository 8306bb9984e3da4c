// Times as the API writes them, "2026-11-29T16:44:49Z" or with a fraction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shunt::test_api {

struct UnixTime {
  std::int64_t seconds = 0;
  std::int32_t nanos = 0;
  auto operator<=>(const UnixTime&) const = default;
};

std::optional<UnixTime> parse_rfc3339(std::string_view text);
std::string to_rfc3339(UnixTime time);  // microseconds, when there are any
UnixTime unix_now();

}  // namespace shunt::test_api
