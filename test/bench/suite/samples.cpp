#include "bench/suite/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shunt::bench {

double Samples::percentile(double share) const {
  if (values_.empty()) {
    return 0;
  }
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  const auto index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

std::string three_digits(double value) {
  if (!std::isfinite(value)) {
    return "-";
  }
  if (value == 0) {
    return "0";
  }
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  return fmt::format("{:.{}f}", value, std::clamp(2 - magnitude, 0, 6));
}

std::string short_count(std::size_t count) {
  return count >= 1000 && count % 1000 == 0 ? fmt::format("{}k", count / 1000)
                                            : fmt::format("{}", count);
}

}  // namespace shunt::bench
