#include "bench/suite/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "bench/suite/measure.h"
#include "bench/suite/svg_chart.h"

namespace shunt::bench {
namespace {

using Value = std::function<double(const Row&)>;

Series series_of(
    Report& report,
    const std::vector<std::string>& sizes,
    const char* what,
    const char* name,
    const Value& value) {
  Series series{name, {}};
  for (const std::string& size : sizes) {
    const Row* row = report.find(what, size);
    const double found = row == nullptr ? 0 : value(*row);
    series.values.push_back(found > 0 ? std::optional(found) : std::nullopt);
  }
  return series;
}

bool has_values(const Series& series) {
  return std::any_of(series.values.begin(), series.values.end(), [](const auto& value) {
    return value.has_value();
  });
}

}  // namespace

std::string figure(Report& report, const std::vector<std::string>& sizes, const Machine& machine) {
  const Value median = [](const Row& row) { return row.measured.median(); };
  const Value p99 = [](const Row& row) { return row.measured.p99(); };
  const Value floor = [](const Row& row) { return row.base.median(); };
  const Value other = [](const Row& row) { return row.kube_proxy.median(); };
  const auto bars = [&](const char* what, const char* name, const Value& value) {
    return series_of(report, sizes, what, name, value);
  };
  std::vector<Chart> charts{
      {"Event to data path, ms",
       sizes,
       {bars(kFlipToDataPath, "median", median),
        bars(kFlipToDataPath, "p99", p99),
        bars(kFlipToDataPath, "kube-proxy", other)}},
      {"First sync, s",
       sizes,
       {bars(kFirstSync, "kube-shunt", median),
        bars(kFirstSync, "bare floor", floor),
        bars(kFirstSync, "kube-proxy", other)}},
      {"Resident memory, MB",
       sizes,
       {bars(kResident, "kube-shunt", median), bars(kResident, "kube-proxy", other)}}};
  for (Chart& chart : charts) {
    std::erase_if(chart.series, [](const Series& series) { return !has_values(series); });
  }
  return render_svg(
      charts,
      fmt::format(
          "Services x endpoints; logarithmic scales; {} cores, Linux {}, commit {}",
          machine.cores,
          machine.kernel,
          machine.commit));
}

}  // namespace shunt::bench
