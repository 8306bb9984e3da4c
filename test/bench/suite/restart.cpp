#include "bench/suite/generation.h"
#include "bench/suite/measure.h"

namespace shunt::bench {

// The kernel is asked as well: a write that the daemon does not count raises the generation.
void measure_restart(Stage& stage, const Options& options, Report& report) {
  const std::string size = stage.load().text();
  Row time{"restart with nothing changed, to in sync", size, "s"};
  Row messages{"  messages it wrote", size, ""};
  Row transactions{"  transactions the kernel saw", size, ""};
  const int runs = options.quick || stage.load().services >= 100'000 ? 1 : 3;
  for (int run = 0; run < runs; ++run) {
    for (const bool killed : {true, false}) {
      killed ? stage.kill_daemon() : stage.stop_daemon();
      const std::uint32_t before = generation_of(stage.node());
      const Nanoseconds begin = stage.start_daemon();
      const nlohmann::json status = stage.wait_in_sync();
      time.measured.add(seconds(now_ns() - begin));
      messages.measured.add(status.at("messages").get<double>());
      transactions.measured.add(generation_of(stage.node()) - before);
    }
  }
  const Floors floors = measure_floors(stage, options, Then::Dump);
  Samples floor;
  for (std::size_t i = 0; i < floors.lists.size(); ++i) {
    floor.add(floors.lists.values()[i] + floors.dumps.values()[i]);
  }
  time.against("floor", std::move(floor));
  if (stage.load().services <= 10'000) {
    time.want_median_below(1);
  }
  messages.want_exactly(0);
  transactions.want_exactly(0);
  report.add(std::move(time));
  report.add(std::move(messages));
  report.add(std::move(transactions));
}

}  // namespace shunt::bench
