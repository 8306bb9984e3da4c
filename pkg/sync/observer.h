// What the sync loop tells those who keep count and those who answer for it: metrics, health,
// Events. They read along and steer nothing.
//
// Everything is called on the sync thread, which must not be made to wait.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "desired/planner.h"
#include "kube/node.h"
#include "kube/notice.h"
#include "net/cidr.h"
#include "net/ip_address.h"
#include "sync/status.h"

namespace shunt::sync {

struct RunReport {
  bool succeeded = false;
  bool everything = false;  // looked at all frontends
  std::chrono::nanoseconds duration{};
  backend::Cost cost;
  WithoutLocal without_local;  // as of this run
  std::optional<backend::RuleCounts> rules;
};

class Observer {
 public:
  virtual ~Observer() = default;
  // The loop came round; at least when it is poked.
  virtual void turned() {}
  // Work is waiting where none was: the next run is for it.
  virtual void queued() {}
  // Mail was taken from the watches: so many Services, so many slices.
  virtual void received(std::size_t services, std::size_t slices) {
    (void)services;
    (void)slices;
  }
  // The Node that is known now, or null.
  virtual void node_seen(const kube::Node* node) { (void)node; }
  virtual void health_check_planned(
      net::Family family,
      const kube::ObjectKey& service,
      const std::optional<desired::HealthCheck>& check,
      const std::string& uid) {
    (void)family;
    (void)service;
    (void)check;
    (void)uid;
  }
  // Where NodePorts answer from now on: the node's addresses in these ranges.
  virtual void node_ports_planned(net::Family family, const std::vector<net::Cidr>& ranges) {
    (void)family;
    (void)ranges;
  }
  virtual void ran(net::Family family, const RunReport& report) {
    (void)family;
    (void)report;
  }
  // The kernel has the first complete state, of every family.
  virtual void first_sync_done() {}
  // A change of a Service's endpoints is in the kernel, so long after its trigger time
  // (spec/semantics.md §12). Clocks of other machines decide: it may be negative.
  virtual void programmed(net::Family family, std::chrono::nanoseconds latency) {
    (void)family;
    (void)latency;
  }
  virtual void drifted(net::Family family, const backend::Drift& drift) {
    (void)family;
    (void)drift;
  }
  virtual void noticed(const kube::Notice& notice) { (void)notice; }
};

}  // namespace shunt::sync
