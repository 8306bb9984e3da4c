// The benchmark: one table, ratios against floors of the same run. scripts/bench.sh builds and runs
// it; README.md in test/bench says what each row is.

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <exception>
#include <fstream>
#include <thread>

#include "bench/suite/figure.h"
#include "bench/suite/measure.h"
#include "bench/suite/options.h"
#include "bench/suite/report.h"

namespace {

using namespace shunt::bench;

Machine this_machine(const Options& options) {
  Machine machine;
  machine.cores = std::thread::hardware_concurrency();
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) {
      machine.processor = line.substr(line.find(':') + 2);
      break;
    }
  }
  utsname names{};
  (void)::uname(&names);  // cannot fail
  machine.kernel = names.release;
  machine.commit = options.commit;
  machine.build = SHUNT_BUILD_TYPE;
  return machine;
}

// A measurement that fails takes its own rows along, and no others.
template <typename Measure>
void attempt(const std::string& part, Report& report, const Measure& measure) {
  const Nanoseconds begin = now_ns();
  try {
    measure();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_suite: {}: {}\n", part, error.what());
    report.fail(part, error.what());
  }
  fmt::print(stderr, "measured in {:.1f} s: {}\n", seconds(now_ns() - begin), part);
}

void measure_size(std::size_t services, bool largest, const Options& options, Report& report) {
  const LoadSize load{services, 10};
  Stage stage(load);
  const auto part = [&](const char* name, const auto& measure) {
    if (options.wants(name)) {
      attempt(name + (" at " + load.text()), report, [&] { measure(stage, options, report); });
    }
  };
  part("sync", measure_first_sync);
  stage.ensure_daemon();
  part("memory", measure_memory);
  part("changes", measure_changes);
  part("service", measure_services);
  part("burst", measure_burst);
  part("restart", measure_restart);
  part("connections", measure_connections);
  if (largest) {
    part("foreign", measure_foreign_writer);
  }
  if (!options.kube_proxy.empty()) {
    part("kube-proxy", compare_kube_proxy);
  }
}

// What only several sizes together tell.
void compare_sizes(const Options& options, Report& report) {
  const std::size_t low = options.sizes.front();
  const std::size_t high = options.sizes.back();
  const std::string small = LoadSize{low, 10}.text();
  const std::string large = LoadSize{high, 10}.text();
  if (low == high) {
    return;
  }
  for (const char* what : {kFlipToDataPath, kFlipToKernel}) {
    const Row* base = report.find(what, small);
    const Row* row = report.find(what, large);
    if (base != nullptr && row != nullptr) {
      Row growth{std::string(what) + ", against " + small, large, "ms", row->measured};
      growth.against("at " + small, base->measured);
      growth.want_ratio_below(1.5);
      report.add(std::move(growth));
    }
  }
  const Row* base = report.find(kResident, small);
  const Row* row = report.find(kResident, large);
  if (base != nullptr && row != nullptr) {
    const double bytes = (row->measured.median() - base->measured.median()) * 1e6;
    report.add(
        {"memory of a further Service with 10 endpoints",
         large,
         "bytes",
         {bytes / static_cast<double>(high - low)}});
  }
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  if (!(file << text)) {
    throw std::runtime_error("cannot write " + path);
  }
}

int run(const Options& options) {
  const Machine machine = this_machine(options);
  Report report;
  std::vector<std::string> sizes;
  for (const std::size_t services : options.sizes) {
    sizes.push_back(LoadSize{services, 10}.text());
    attempt("a cluster of " + sizes.back(), report, [&] {
      measure_size(services, services == options.sizes.back(), options, report);
    });
  }
  if (options.wants("memory")) {
    attempt("memory of endpoints", report, [&] { measure_further_endpoints(options, report); });
  }
  if (options.wants("large")) {
    attempt("a large Service", report, [&] { measure_large_service(options, report); });
  }
  compare_sizes(options, report);

  fmt::print("{}", report.table(machine));
  if (!options.json_file.empty()) {
    write_file(options.json_file, report.json(machine).dump(1) + "\n");
  }
  if (!options.svg_file.empty()) {
    write_file(options.svg_file, figure(report, sizes, machine));
  }
  return options.strict && report.missed() > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    int exit_code = 0;
    const auto options = parse_options(argc, argv, exit_code);
    if (!options) {
      return exit_code;
    }
    if (::geteuid() != 0) {
      fmt::print("SKIP: network namespaces need root\n");
      return 0;
    }
    return run(*options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_suite: {}\n", error.what());
    return 1;
  }
}
