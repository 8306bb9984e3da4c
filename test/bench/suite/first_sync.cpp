#include <algorithm>

#include "bench/suite/generation.h"
#include "bench/suite/measure.h"

namespace shunt::bench {
namespace {

// From the start of the process to the last transaction.
double first_sync_seconds(Stage& stage) {
  stage.stop_daemon();
  stage.remove_rules();
  const GenerationWatch watch(stage.node());
  const Nanoseconds begin = stage.start_daemon();
  (void)stage.wait_in_sync();
  return seconds(watch.last_change() - begin);
}

Samples sums(const Samples& a, const Samples& b) {
  Samples out;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    out.add(a.values()[i] + b.values()[i]);
  }
  return out;
}

}  // namespace

void measure_first_sync(Stage& stage, const Options& options, Report& report) {
  const std::size_t services = stage.load().services;
  Row row{kFirstSync, stage.load().text(), "s"};
  const int runs = options.quick ? 1 : services >= 100'000 ? 2 : 5;
  for (int run = 0; run < runs; ++run) {
    row.measured.add(first_sync_seconds(stage));
  }
  const Floors floors = measure_floors(stage, options, Then::Nothing);
  report.add({"reading the lists, bare", stage.load().text(), "s", floors.lists});
  report.add({"writing the elements, bare", stage.load().text(), "s", floors.writes});
  row.against("floor", sums(floors.lists, floors.writes));
  if (services <= 10'000) {
    row.want_median_below(1.0);
    row.want_ratio_below(2);
  } else {
    row.want_median_below(20);
  }
  report.add(std::move(row));
}

}  // namespace shunt::bench
