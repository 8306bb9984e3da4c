// A Metrics to which everything was told once: for tests, and for scripts/check_monitoring.sh,
// which compares what dashboards and alerts name with what there is.
#pragma once

#include "obs/metrics.h"

namespace shunt::obs {

inline Suppliers sample_suppliers() {
  Suppliers out;
  out.healthz_answers = [] { return Suppliers::Answers{{200, 7}, {503, 1}}; };
  out.livez_answers = [] { return Suppliers::Answers{{200, 9}}; };
  out.conntrack = [](net::Family) { return Suppliers::Conntrack{4, 1, 1000, 12}; };
  out.state = [](net::Family) { return Suppliers::State{30, 1, 2, true}; };
  out.resources = [] {
    return std::vector<Suppliers::Resource>{
        {"services", Seconds(1.5), 1, 3}, {"endpointslices", std::nullopt, 0, 1}};
  };
  out.connections = [] {
    return std::vector<Suppliers::Connections>{
        {"shop", "web", "http", "TCP", "IPv4", 40},
        {"shop", "web", "http", "TCP", "IPv4", 2},
        {"shop", "db", "", "TCP", "IPv4", 1}};
  };
  out.snapshot_age = [] { return Seconds(30); };
  out.checks = [] { return std::vector<Suppliers::Check>{{"ping", "healthz", true, 5, 0}}; };
  return out;
}

inline void tell_everything(Metrics& metrics, net::Family family) {
  metrics.iptables_rules(family, {5, 8, 1, 2});
  metrics.synced(family, {Seconds(0.001), false, false, true});
  metrics.queued(family);
  metrics.service_changes(1);
  metrics.endpoint_changes(2);
  metrics.changes_taken();
  metrics.committed(family, {Seconds(0.0001), 5, 600, 3});
  metrics.synced(family, {Seconds(0.002), true, true});
  metrics.synced(family, {Seconds(0.001), false, false});
  metrics.programmed(family, Seconds(0.7));
  metrics.without_local(family, 1, 2);
  metrics.cleanup_failed(family);
  metrics.conntrack_pass(family, Seconds(0.01));
  metrics.drift_repaired(family, "element", 2);
  metrics.drift_repaired(family, "something else");
  metrics.unreadable("services");
  metrics.first_sync(Seconds(0.8));
  metrics.config_reloaded(true);
  metrics.config_reloaded(false);
  metrics.request_done("200", "GET", "LIST", "10.0.0.1:6443", Seconds(0.01));
}

}  // namespace shunt::obs
