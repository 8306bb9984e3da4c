// The comparison: a kube-proxy that somebody named, on the same node, against the same server, one
// agent at a time. It tells nobody when it is in sync, so what is seen from outside decides.

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "bench/suite/measure.h"
#include "bench/suite/objects.h"
#include "bench/suite/prober.h"
#include "bench/suite/process_stats.h"

namespace shunt::bench {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{15 * 60'000};

// As a cluster would have it, with the limits of the whole machine left alone.
std::string write_configuration(const Stage& stage) {
  const std::string path = stage.directory() + "/kube-proxy.yaml";
  std::ofstream(path) << "apiVersion: kubeproxy.config.k8s.io/v1alpha1\n"
                         "kind: KubeProxyConfiguration\n"
                         "mode: nftables\n"
                         "clientConnection:\n  kubeconfig: "
                      << stage.pki() << "/kubeconfig\nhostnameOverride: " << Stage::kNode
                      << "\nconntrack:\n  maxPerCore: 0\n  min: 0\n";
  return path;
}

double flip(Stage& stage, Prober& prober, const ServiceTarget& target, unsigned next) {
  const HttpReply reply = stage.http().request(
      "PATCH", target.slice_path(), endpoints_patch(target.slice_of_two(next)));
  const auto arrived = prober.wait_for(next, kPatience);
  if (!arrived) {
    throw std::runtime_error("kube-proxy: a flip did not reach the data path");
  }
  return milliseconds_between(reply.sent, *arrived);
}

}  // namespace

void compare_kube_proxy(Stage& stage, const Options& options, Report& report) {
  const std::string size = stage.load().text();
  const ServiceTarget target{"compared", "10.111.0.8", net::Protocol::Tcp};
  stage.apply({target.service(), target.slice_of_two(0)});
  stage.stop_daemon();
  stage.remove_rules();

  lab::ProcessSpec spec;
  spec.argv = {options.kube_proxy, "--config", write_configuration(stage)};
  spec.log_file = stage.directory() + "/kube-proxy.log";
  Prober prober(stage.pods(), target.protocol, target.address(), {target_pod(1), target_pod(2)});
  const Nanoseconds begin = now_ns();
  lab::Process process(stage.node(), spec);
  Samples first;
  Samples flips;
  Samples resident;
  stage.clients().run([&] {
    // It writes everything in one transaction, so one Service that works stands for all.
    const auto works = prober.wait_for(0, kPatience);
    if (!works) {
      throw std::runtime_error("kube-proxy: no Service works after a quarter of an hour");
    }
    first.add(seconds(*works - begin));
    std::this_thread::sleep_for(milliseconds(3000));
    resident.add(memory_of(process.pid()).resident_mb);
    for (unsigned i = 0; i < (options.quick ? 4 : 20); ++i) {
      flips.add(flip(stage, prober, target, i % 2 == 0 ? 1 : 0));
      std::this_thread::sleep_for(milliseconds(50));
    }
  });
  (void)process.terminate();
  stage.remove_rules();

  const auto fill = [&](const char* what, const Samples& samples) {
    if (Row* row = report.find(what, size)) {
      row->kube_proxy = samples;
    }
  };
  fill(kFirstSync, first);
  fill(kFlipToDataPath, flips);
  fill(kResident, resident);
}

}  // namespace shunt::bench
