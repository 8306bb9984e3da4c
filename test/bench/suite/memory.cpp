#include <chrono>
#include <thread>

#include "bench/suite/measure.h"
#include "bench/suite/process_stats.h"

namespace shunt::bench {
namespace {

using std::chrono::milliseconds;

// Freshly in sync, and quiet for a while.
Memory quiet_memory(Stage& stage, const Options& options) {
  stage.stop_daemon();
  (void)stage.start_daemon();
  (void)stage.wait_in_sync();
  std::this_thread::sleep_for(milliseconds(options.quick ? 1000 : 3000));
  return memory_of(stage.daemon_pid());
}

double idle_percent(Stage& stage, milliseconds time) {
  const Nanoseconds cpu = cpu_of(stage.daemon_pid());
  const Nanoseconds begin = now_ns();
  std::this_thread::sleep_for(time);
  const Nanoseconds spent = cpu_of(stage.daemon_pid()) - cpu;
  return 100 * seconds(spent) / seconds(now_ns() - begin);
}

}  // namespace

void measure_memory(Stage& stage, const Options& options, Report& report) {
  const std::string size = stage.load().text();
  stage.stop_daemon();
  stage.remove_rules();
  const Memory memory = quiet_memory(stage, options);
  Row resident{kResident, size, "MB", {memory.resident_mb}};
  if (stage.load().services <= 10'000) {
    resident.want_median_below(60);
  } else {
    resident.want_median_below(300);
  }
  report.add(std::move(resident));
  report.add({"  of that anonymous", size, "MB", {memory.anonymous_mb}});
  report.add({"  at its peak", size, "MB", {memory.peak_mb}});
  Row idle{"idle CPU", size, "% of a core"};
  idle.measured.add(idle_percent(stage, milliseconds(options.quick ? 3'000 : 10'000)));
  idle.want_median_below(0.1);
  report.add(std::move(idle));
}

void measure_further_endpoints(const Options& options, Report& report) {
  const std::size_t services = options.quick ? 1'000 : 10'000;
  double bytes[2] = {0, 0};
  for (const bool more : {false, true}) {
    Stage stage({services, more ? std::size_t{20} : std::size_t{10}});
    bytes[more ? 1 : 0] = quiet_memory(stage, options).resident_mb * 1e6;
    stage.stop_daemon();
  }
  Row row{"memory of a further endpoint", short_count(services) + " x 20", "bytes"};
  row.measured.add((bytes[1] - bytes[0]) / (10 * static_cast<double>(services)));
  row.want_median_below(250);
  report.add(std::move(row));
}

}  // namespace shunt::bench
