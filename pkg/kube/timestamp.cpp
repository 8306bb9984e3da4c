#include "kube/timestamp.h"

#include <chrono>

namespace shunt::kube {
namespace {

// Takes pieces off the front of a text. One failure is remembered and fails the whole.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  // Exactly `digits` digits, at most `most`.
  int number(std::size_t digits, int most) {
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (i >= rest_.size() || rest_[i] < '0' || rest_[i] > '9') {
        ok_ = false;
        return 0;
      }
      value = value * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(digits);
    ok_ = ok_ && value <= most;
    return value;
  }
  void expect(char c) { ok_ = skip(c) && ok_; }
  bool skip(char c) {
    const bool there = !rest_.empty() && rest_.front() == c;
    rest_.remove_prefix(there ? 1 : 0);
    return there;
  }
  bool at_digit() const { return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; }
  void refuse() { ok_ = false; }
  bool complete() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

std::int32_t fraction_nanos(Scanner& scan) {
  if (!scan.at_digit()) {
    scan.refuse();
  }
  std::int32_t nanos = 0;
  std::int32_t unit = 100'000'000;
  while (scan.at_digit()) {
    nanos += scan.number(1, 9) * unit;
    unit /= 10;
  }
  return nanos;
}

std::chrono::seconds zone_offset(Scanner& scan) {
  if (scan.skip('Z')) {
    return {};
  }
  const bool east = scan.skip('+');
  if (!east) {
    scan.expect('-');
  }
  const std::chrono::hours hours{scan.number(2, 23)};
  scan.expect(':');
  const std::chrono::minutes minutes{scan.number(2, 59)};
  return east ? hours + minutes : -(hours + minutes);
}

}  // namespace

std::optional<Timestamp> parse_rfc3339(std::string_view text) {
  Scanner scan(text);
  const std::chrono::year year{scan.number(4, 9999)};
  scan.expect('-');
  const std::chrono::month month{static_cast<unsigned>(scan.number(2, 12))};
  scan.expect('-');
  const std::chrono::day day{static_cast<unsigned>(scan.number(2, 31))};
  scan.expect('T');
  const std::chrono::hours hours{scan.number(2, 23)};
  scan.expect(':');
  const std::chrono::minutes minutes{scan.number(2, 59)};
  scan.expect(':');
  const std::chrono::seconds seconds{scan.number(2, 59)};
  const std::int32_t nanos = scan.skip('.') ? fraction_nanos(scan) : 0;
  const std::chrono::seconds offset = zone_offset(scan);
  const std::chrono::year_month_day date(year, month, day);
  if (!scan.complete() || !date.ok()) {
    return std::nullopt;
  }
  const std::chrono::sys_seconds time =
      std::chrono::sys_days(date) + hours + minutes + seconds - offset;
  return Timestamp{time.time_since_epoch().count(), nanos};
}

std::int64_t unix_nanoseconds(const std::optional<Timestamp>& time) {
  constexpr std::int64_t kMostSeconds = 9'223'372'035;  // one less than 2^63 ns
  if (!time || time->seconds > kMostSeconds || time->seconds < -kMostSeconds) {
    return 0;
  }
  return time->seconds * 1'000'000'000 + time->nanos;
}

}  // namespace shunt::kube
