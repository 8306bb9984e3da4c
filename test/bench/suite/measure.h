// The measurements. Each adds its rows to the report; what it needs to be running or absent is said
// here. All of them throw when the daemon does not do its work at all.
#pragma once

#include "bench/suite/options.h"
#include "bench/suite/report.h"
#include "bench/suite/stage.h"

namespace shunt::bench {

// Names of rows that others look up.
inline constexpr char kFirstSync[] = "first sync";
inline constexpr char kFlipToKernel[] = "flip, to the kernel";
inline constexpr char kFlipToDataPath[] = "flip, to the data path";
inline constexpr char kResident[] = "resident memory";
inline constexpr char kConnects[] = "connects a second to a ClusterIP";

// No daemon runs, the node is bare. Leaves a daemon that is in sync.
void measure_first_sync(Stage& stage, const Options& options, Report& report);
// The rest: a daemon is in sync, and is so again afterwards.
void measure_memory(Stage& stage, const Options& options, Report& report);
void measure_changes(Stage& stage, const Options& options, Report& report);
void measure_services(Stage& stage, const Options& options, Report& report);
void measure_burst(Stage& stage, const Options& options, Report& report);
void measure_restart(Stage& stage, const Options& options, Report& report);
void measure_foreign_writer(Stage& stage, const Options& options, Report& report);
void measure_connections(Stage& stage, const Options& options, Report& report);
// Stops the daemon and takes its rules away: kube-proxy has the node for itself.
void compare_kube_proxy(Stage& stage, const Options& options, Report& report);

// Clusters of their own.
void measure_further_endpoints(const Options& options, Report& report);
void measure_large_service(const Options& options, Report& report);

// What a bare program needs for the same; each figure is of one run, in seconds.
struct Floors {
  Samples lists;
  Samples writes;
  Samples dumps;  // zeros unless asked for: a kernel reads large sets back slowly
};
enum class Then : std::uint8_t { Nothing, Dump };
// A daemon has begun there before: the floor asks the server for what the daemon asked for.
Floors measure_floors(Stage& stage, const Options& options, Then then);
// Transactions of one element each beside the elements of that load, in milliseconds.
Samples measure_single_writes(Stage& stage, std::size_t count);

}  // namespace shunt::bench
