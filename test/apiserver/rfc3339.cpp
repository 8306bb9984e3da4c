#include "test/apiserver/rfc3339.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>

namespace shunt::test_api {
namespace {

// A number of exactly `digits` digits at the front of `text`, which loses it and one separator.
std::optional<int> take(std::string_view& text, std::size_t digits, char separator) {
  int value = 0;
  const std::string_view head = text.substr(0, digits);
  const auto [end, error] = std::from_chars(head.data(), head.data() + head.size(), value);
  if (error != std::errc{} || head.size() != digits || end != head.data() + digits || value < 0) {
    return std::nullopt;
  }
  text.remove_prefix(digits);
  if (separator != '\0') {
    if (!text.starts_with(separator)) {
      return std::nullopt;
    }
    text.remove_prefix(1);
  }
  return value;
}

std::int32_t take_fraction(std::string_view& text) {
  if (!text.starts_with('.')) {
    return 0;
  }
  text.remove_prefix(1);
  std::int32_t nanos = 0;
  std::int32_t unit = 100'000'000;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    nanos += unit * (text.front() - '0');
    unit /= 10;
    text.remove_prefix(1);
  }
  return nanos;
}

// "Z", or "+02:00".
std::optional<int> take_offset(std::string_view text) {
  if (text == "Z" || text == "z") {
    return 0;
  }
  if (text.empty() || (text.front() != '+' && text.front() != '-')) {
    return std::nullopt;
  }
  const int sign = text.front() == '-' ? -1 : 1;
  text.remove_prefix(1);
  const auto hours = take(text, 2, ':');
  const auto minutes = hours ? take(text, 2, '\0') : std::nullopt;
  return minutes && text.empty() ? std::optional(sign * (*hours * 3600 + *minutes * 60))
                                 : std::nullopt;
}

}  // namespace

std::optional<UnixTime> parse_rfc3339(std::string_view text) {
  using namespace std::chrono;
  const auto y = take(text, 4, '-');
  const auto mon = y ? take(text, 2, '-') : std::nullopt;
  const auto d = mon ? take(text, 2, 'T') : std::nullopt;
  const auto h = d ? take(text, 2, ':') : std::nullopt;
  const auto min = h ? take(text, 2, ':') : std::nullopt;
  const auto s = min ? take(text, 2, '\0') : std::nullopt;
  if (!s) {
    return std::nullopt;
  }
  const std::int32_t nanos = take_fraction(text);
  const auto offset = take_offset(text);
  const auto date = year(*y) / *mon / *d;
  if (!offset || !date.ok()) {
    return std::nullopt;
  }
  const sys_seconds at =
      sys_days(date) + hours(*h) + minutes(*min) + seconds(*s) - seconds(*offset);
  return UnixTime{at.time_since_epoch().count(), nanos};
}

std::string to_rfc3339(UnixTime time) {
  using namespace std::chrono;
  const sys_seconds at{seconds(time.seconds)};
  const auto day = floor<days>(at);
  const year_month_day date(day);
  const hh_mm_ss clock(at - day);
  std::string out = fmt::format(
      "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
      static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()),
      static_cast<unsigned>(date.day()),
      clock.hours().count(),
      clock.minutes().count(),
      clock.seconds().count());
  if (time.nanos >= 1000) {
    out += fmt::format(".{:06}", time.nanos / 1000);
  }
  return out + "Z";
}

UnixTime unix_now() {
  using namespace std::chrono;
  const auto now = system_clock::now().time_since_epoch();
  const auto whole = floor<seconds>(now);
  return {whole.count(), static_cast<std::int32_t>(nanoseconds(now - whole).count())};
}

}  // namespace shunt::test_api
