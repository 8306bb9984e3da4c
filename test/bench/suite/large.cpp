// Measurements with one Service of many endpoints.

#include <chrono>
#include <stdexcept>
#include <thread>

#include "bench/suite/commits.h"
#include "bench/suite/generation.h"
#include "bench/suite/large_service.h"
#include "bench/suite/measure.h"
#include "bench/suite/process_stats.h"

namespace shunt::bench {
namespace {

using std::chrono::milliseconds;

}  // namespace

// Two slices are written a second, four pods are replaced in each.
void measure_burst(Stage& stage, const Options& options, Report& report) {
  constexpr milliseconds kBetweenWrites{500};
  constexpr std::size_t kPodsAWrite = 4;
  LargeService service("rolling", "10.111.0.6", 500);
  stage.apply(service.objects());
  stage.wait_applied();

  const Nanoseconds cpu = cpu_of(stage.daemon_pid());
  const auto begin = std::chrono::steady_clock::now();
  const int writes = options.quick ? 10 : 60;
  for (int i = 0; i < writes; ++i) {
    service.roll(stage, kPodsAWrite);
    std::this_thread::sleep_until(begin + (i + 1) * kBetweenWrites);
  }
  const Nanoseconds spent = cpu_of(stage.daemon_pid()) - cpu;
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  stage.wait_applied();  // or the CPU that was not used would look cheap

  Row row{"rolling update of 500 endpoints, CPU", stage.load().text(), "% of a core"};
  row.measured.add(100 * seconds(spent) / wall);
  row.want_median_below(3);
  report.add(std::move(row));
}

void measure_large_service(const Options& options, Report& report) {
  constexpr std::size_t kEndpoints = 10'000;
  Stage stage({0, 0});
  LargeService service("large", "10.111.0.7", kEndpoints);
  stage.apply(service.objects());
  const std::string size = "1 x " + short_count(kEndpoints);
  Row sync{kFirstSync, size, "s"};
  for (int run = 0; run < (options.quick ? 1 : 3); ++run) {
    stage.stop_daemon();
    stage.remove_rules();
    const GenerationWatch watch(stage.node());
    const Nanoseconds begin = stage.start_daemon();
    (void)stage.wait_in_sync();
    sync.measured.add(seconds(watch.last_change() - begin));
  }
  report.add(std::move(sync));

  Row flip{"an endpoint goes or comes, to the kernel", size, "ms"};
  Commits commits(stage.node(), "kube-shunt");
  const Nanoseconds cpu = cpu_of(stage.daemon_pid());
  for (std::size_t i = 0; i < options.flips; ++i) {
    commits.forget();
    const HttpReply reply = service.set_ready(stage, i / 2 % 100, i % 2 != 0);
    const auto commit = commits.wait_for("endpoints", milliseconds(10'000));
    if (!commit) {
      throw std::runtime_error("a change did not reach the kernel in ten seconds");
    }
    flip.measured.add(milliseconds_between(reply.sent, commit->at));
    std::this_thread::sleep_for(milliseconds(10));
  }
  const Nanoseconds spent = cpu_of(stage.daemon_pid()) - cpu;
  report.add(std::move(flip));
  report.add(
      {"CPU of such a change",
       size,
       "ms",
       {milliseconds_between(0, spent) / static_cast<double>(options.flips)}});
}

}  // namespace shunt::bench
