#include "kube/timestamp.h"

#include <catch2/catch_test_macros.hpp>

namespace shunt::kube {
namespace {

TEST_CASE("times of the API become Unix time") {
  struct Case {
    const char* text;
    std::int64_t seconds;
    std::int32_t nanos;
  };
  const Case cases[] = {
      {"1970-01-01T00:00:00Z", 0, 0},
      {"2026-11-29T16:44:49Z", 1'795'970'689, 0},
      {"2026-11-29T17:44:49+01:00", 1'795'970'689, 0},
      {"2026-11-29T11:14:49.5-05:30", 1'795'970'689, 500'000'000},
      {"2026-11-29T16:44:49.000000001Z", 1'795'970'689, 1},
      {"2026-11-29T16:44:49.123456789987654321Z", 1'795'970'689, 123'456'789},
      {"2024-02-29T00:00:00Z", 1'709'164'800, 0},
      {"1969-12-31T23:59:59.25Z", -1, 250'000'000},
      {"0001-01-01T00:00:00Z", -62'135'596'800, 0},
      {"9999-12-31T23:59:59Z", 253'402'300'799, 0},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.text) { CHECK(parse_rfc3339(c.text) == Timestamp{c.seconds, c.nanos}); }
  }
}

TEST_CASE("what is no RFC 3339 time is refused") {
  for (const char* text :
       {"",
        "2026",
        "2026-11-29",
        "2026-11-29T16:44:49",
        "2026-11-29 16:44:49Z",
        "2026-11-29t16:44:49z",
        "2026-11-29T16:44Z",
        "2026-11-29T16:44:49.Z",
        "2026-11-29T16:44:49Zx",
        "2026-11-29T16:44:49+0100",
        "2026-11-29T16:44:49+1:00",
        "2026-11-29T16:44:49+24:00",
        "2026-11-29T24:00:00Z",
        "2026-11-29T16:60:00Z",
        "2026-11-29T16:44:60Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-11-00T00:00:00Z",
        "-026-11-29T16:44:49Z",
        "+2026-11-29T16:44:49Z"}) {
    DYNAMIC_SECTION(text) { CHECK(parse_rfc3339(text) == std::nullopt); }
  }
}

TEST_CASE("nanoseconds are zero when there is no time or it does not fit") {
  CHECK(unix_nanoseconds(Timestamp{1, 5}) == 1'000'000'005);
  CHECK(unix_nanoseconds(Timestamp{-1, 250'000'000}) == -750'000'000);
  CHECK(unix_nanoseconds(std::nullopt) == 0);
  CHECK(unix_nanoseconds(parse_rfc3339("9999-12-31T23:59:59Z")) == 0);
  CHECK(unix_nanoseconds(parse_rfc3339("0001-01-01T00:00:00Z")) == 0);
  CHECK(unix_nanoseconds(parse_rfc3339("2262-04-11T23:47:15Z")) == 9'223'372'035'000'000'000);
}

}  // namespace
}  // namespace shunt::kube
