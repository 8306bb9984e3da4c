#include "config/duration.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace shunt::config {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t nanos;
};
constexpr Unit kUnits[] = {
    {"ns", 1},
    {"us", 1'000},
    {"\u00b5s", 1'000},
    {"\u03bcs", 1'000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"m", 60'000'000'000},
    {"h", 3'600'000'000'000}};
constexpr long double kLargest = 9.2e18L;  // a little below what 64 bits hold

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The digits at the front of `text`, which loses them.
long double take_digits(std::string_view& text, long double& scale) {
  long double value = 0;
  while (!text.empty() && is_digit(text.front()) && value < kLargest) {
    value = value * 10 + (text.front() - '0');
    scale *= 10;
    text.remove_prefix(1);
  }
  return value;
}

// "1.5h" at the front of `text`, which loses it.
std::optional<long double> take_part(std::string_view& text) {
  const std::size_t before = text.size();
  long double ignored = 1;
  long double value = take_digits(text, ignored);
  std::size_t digits = before - text.size();
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    const std::size_t left = text.size();
    long double scale = 1;
    const long double fraction = take_digits(text, scale);
    value += fraction / scale;
    digits += left - text.size();
  }
  const auto begins_unit = [](char c) { return c != '.' && !is_digit(c); };
  const auto end = std::find_if_not(text.begin(), text.end(), begins_unit);
  const std::string_view name = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  const auto* unit = std::ranges::find(kUnits, name, &Unit::name);
  if (digits == 0 || unit == std::end(kUnits)) {
    return std::nullopt;
  }
  text.remove_prefix(name.size());
  return value * static_cast<long double>(unit->nanos);
}

}  // namespace

std::optional<Nanos> parse_go_duration(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  if (text == "0") {
    return Nanos{0};
  }
  if (text.empty()) {
    return std::nullopt;
  }
  long double total = 0;
  while (!text.empty()) {
    const auto part = take_part(text);
    if (!part) {
      return std::nullopt;
    }
    total += *part;
    if (total > kLargest) {
      return std::nullopt;
    }
  }
  return Nanos(static_cast<std::int64_t>(negative ? -total : total));
}

std::string go_duration(Nanos duration) {
  if (duration.count() == 0) {
    return "0s";
  }
  std::string out = duration.count() < 0 ? "-" : "";
  // As unsigned, so that the smallest value can be negated, too.
  std::uint64_t nanos = duration.count() < 0 ? 0 - static_cast<std::uint64_t>(duration.count())
                                             : static_cast<std::uint64_t>(duration.count());
  const auto with_fraction = [&out](std::uint64_t value, std::uint64_t unit, const char* name) {
    out += std::to_string(value / unit);
    if (std::uint64_t rest = value % unit; rest != 0) {
      out += '.';
      for (std::uint64_t digit = unit / 10; rest != 0; digit /= 10) {
        out += static_cast<char>('0' + rest / digit);
        rest %= digit;
      }
    }
    out += name;
  };
  if (nanos < 1'000) {
    with_fraction(nanos, 1, "ns");
  } else if (nanos < 1'000'000) {
    with_fraction(nanos, 1'000, "\u00b5s");
  } else if (nanos < 1'000'000'000) {
    with_fraction(nanos, 1'000'000, "ms");
  } else {
    constexpr std::uint64_t kMinute = 60'000'000'000;
    const std::uint64_t minutes = nanos / kMinute;
    nanos %= kMinute;
    if (minutes >= 60) {
      out += std::to_string(minutes / 60);
      out += 'h';
    }
    if (minutes > 0) {
      out += std::to_string(minutes % 60);
      out += 'm';
    }
    with_fraction(nanos, 1'000'000'000, "s");
  }
  return out;
}

}  // namespace shunt::config
