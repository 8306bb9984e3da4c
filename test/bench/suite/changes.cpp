// Flips of an endpoint, and counts that change by one: until the kernel announces the transaction,
// and until a new connection goes the new way.

#include <chrono>
#include <functional>
#include <random>
#include <stdexcept>
#include <thread>

#include "bench/suite/commits.h"
#include "bench/suite/measure.h"
#include "bench/suite/objects.h"
#include "bench/suite/prober.h"
#include "bench/suite/process_stats.h"

namespace shunt::bench {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{10'000};
constexpr char kEndpoints[] = "endpoints";  // the map that every one of these changes

// So that changes fall at no particular moment of anybody's timers.
class Pause {
 public:
  void operator()() { std::this_thread::sleep_for(milliseconds(length_(random_))); }

 private:
  std::mt19937 random_{5};
  std::uniform_int_distribution<int> length_{5, 30};
};

HttpReply patch(Stage& stage, const ServiceTarget& target, const nlohmann::json& slice) {
  return stage.http().request("PATCH", target.slice_path(), endpoints_patch(slice));
}

// Makes `count` changes, each when the one before is done.
Samples to_kernel(
    Stage& stage, std::size_t count, const std::function<HttpReply(std::size_t)>& change) {
  Commits commits(stage.node(), "kube-shunt");
  Pause pause;
  Samples out;
  for (std::size_t i = 0; i < count; ++i) {
    commits.forget();
    const HttpReply reply = change(i);
    const auto commit = commits.wait_for(kEndpoints, kPatience);
    if (!commit) {
      throw std::runtime_error("a change did not reach the kernel in ten seconds");
    }
    out.add(milliseconds_between(reply.sent, commit->at));
    pause();
  }
  return out;
}

Samples flips_to_data_path(Stage& stage, const ServiceTarget& target, std::size_t count) {
  Prober prober(stage.pods(), target.protocol, target.address(), {target_pod(1), target_pod(2)});
  return stage.clients().run([&] {
    if (prober.wait_for(0, kPatience) == std::nullopt) {
      throw std::runtime_error("nothing arrives at the endpoint of " + target.name);
    }
    Pause pause;
    Samples out;
    for (std::size_t i = 0; i < count; ++i) {
      const unsigned next = i % 2 == 0 ? 1 : 0;
      const HttpReply reply = patch(stage, target, target.slice_of_two(next));
      const auto arrived = prober.wait_for(next, kPatience);
      if (!arrived) {
        throw std::runtime_error("a flip did not reach the data path in ten seconds");
      }
      out.add(milliseconds_between(reply.sent, *arrived));
      pause();
    }
    return out;
  });
}

// One HTTP round trip and one transaction of one element each: what a flip must cost anybody.
Samples flip_floor(Stage& stage, const ServiceTarget& target, const Samples& single_writes) {
  Samples out;
  for (std::size_t i = 0; i < single_writes.size(); ++i) {
    const HttpReply reply = patch(stage, target, target.slice_of_two(i % 2 == 0 ? 1 : 0));
    out.add(milliseconds_between(reply.begun, reply.answered) + single_writes.values()[i]);
  }
  (void)patch(stage, target, target.slice_of_two(0));
  return out;
}

}  // namespace

void measure_changes(Stage& stage, const Options& options, Report& report) {
  const std::string size = stage.load().text();
  const ServiceTarget tcp{"two-tcp", "10.111.0.1", net::Protocol::Tcp};
  const ServiceTarget udp{"two-udp", "10.111.0.2", net::Protocol::Udp};
  const ServiceTarget ten{"ten", "10.111.0.3"};
  const ServiceTarget eight{"eight", "10.111.0.4"};
  stage.apply(
      {tcp.service(),
       tcp.slice_of_two(0),
       udp.service(),
       udp.slice_of_two(0),
       ten.service(),
       ten.slice(1, 10),
       eight.service(),
       eight.slice(1, 8)});
  const Samples single_writes = measure_single_writes(stage, options.flips);
  stage.freeze_daemon();
  const Samples floor = flip_floor(stage, tcp, single_writes);
  stage.thaw_daemon();
  stage.wait_applied();

  const Nanoseconds cpu = cpu_of(stage.daemon_pid());
  Row kernel{kFlipToKernel, size, "ms"};
  kernel.measured = to_kernel(stage, options.flips, [&](std::size_t i) {
    return patch(stage, tcp, tcp.slice_of_two(i % 2 == 0 ? 1 : 0));
  });
  const Nanoseconds spent = cpu_of(stage.daemon_pid()) - cpu;
  kernel.against("floor", floor);
  const Samples flip = kernel.measured;
  report.add(std::move(kernel));
  report.add(
      {"CPU of a flip",
       size,
       "ms",
       {milliseconds_between(0, spent) / static_cast<double>(options.flips)}});

  (void)patch(stage, tcp, tcp.slice_of_two(0));
  for (const ServiceTarget* target : {&tcp, &udp}) {
    Row row{target == &tcp ? kFlipToDataPath : "  the same over UDP", size, "ms"};
    row.measured = flips_to_data_path(stage, *target, options.flips);
    row.against("floor", floor);
    row.want_median_below(3);
    row.want_p99_below(15);
    report.add(std::move(row));
  }

  Row count{"10 endpoints to 11 and back, to the kernel", size, "ms"};
  count.measured = to_kernel(stage, options.flips, [&](std::size_t i) {
    return patch(stage, ten, ten.slice(1, i % 2 == 0 ? 11 : 10));
  });
  Row crossing{"8 endpoints to 9 and back, to the kernel", size, "ms"};
  crossing.measured = to_kernel(stage, options.flips, [&](std::size_t i) {
    return patch(stage, eight, eight.slice(1, i % 2 == 0 ? 9 : 8));
  });
  for (Row* row : {&count, &crossing}) {
    row->against("flip", flip);
    row->want_ratio_below(1.5);
    report.add(std::move(*row));
  }
}

void measure_services(Stage& stage, const Options& options, Report& report) {
  const ServiceTarget coming{"coming", "10.111.0.5"};
  stage.apply({coming.slice(1, 10)});
  const std::string service = coming.service().dump();
  // Its slice was there before and is there after: one write, all of the Service's elements.
  const Samples both = to_kernel(stage, 2 * options.flips, [&](std::size_t i) {
    return i % 2 == 0 ? stage.http().request("PUT", coming.service_path() + "?upsert=true", service)
                      : stage.http().request("DELETE", coming.service_path());
  });
  Samples added;
  Samples removed;
  for (std::size_t i = 0; i < both.size(); ++i) {
    (i % 2 == 0 ? added : removed).add(both.values()[i]);
  }
  stage.remove(coming.slice_path());
  const Row* flip = report.find(kFlipToKernel, stage.load().text());
  Row rows[] = {
      {"a Service comes, to the kernel", stage.load().text(), "ms", added},
      {"a Service goes, to the kernel", stage.load().text(), "ms", removed}};
  for (Row& row : rows) {
    if (flip != nullptr) {
      row.against("flip", flip->measured);
      row.want_ratio_below(1.5);
    }
    report.add(std::move(row));
  }
}

}  // namespace shunt::bench
