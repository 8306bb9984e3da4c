// Drains what the watches delivered, re-plans the Services it touches, and applies the difference.
// One thread owns the store, the desired state and the back ends; it is the thread that calls
// run().
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/flow_cleaner.h"
#include "base/published.h"
#include "desired/desired_state.h"
#include "net/cidr.h"
#include "node/start_up.h"
#include "store/object_store.h"
#include "sync/flow_handover.h"
#include "sync/mailboxes.h"
#include "sync/observer.h"
#include "sync/pacing.h"
#include "sync/reporter.h"
#include "sync/status.h"
#include "topology/categorize.h"

namespace shunt::sync {

struct SyncOptions {
  std::string node_name;
  Pacing::Periods periods;
  // Ranges that tell traffic of local pods: `cluster_cidrs`, or the Node's podCIDRs, which the
  // first write then waits for. A family without a range cannot tell: nothing of it is masqueraded
  // for being from outside.
  std::vector<net::Cidr> cluster_cidrs;
  bool node_cidrs = false;
  Millis node_patience{10'000};  // how long the first write waits for the Node and its address
  Millis pod_cidrs_patience{300'000};  // with node_cidrs: how long it then waits for those
  // Ranges of the node's addresses that serve NodePorts; none: `primary`, the Node's own addresses.
  std::vector<net::Cidr> node_ports = {};
  net::IpAddress bind_address = {};  // unless unspecified, the node's own address of its family
  bool external_ips = true;          // the gate AllowServiceExternalIPs
  // Called once, on the sync thread, when only a restart of the process can help. Nothing is
  // written from then on.
  std::function<void(const Error&)> give_up = {};
  // Told of UDP frontends once their rules are in the kernel. Null: nobody cares. Outlives the
  // loop.
  backend::FlowCleaner* flow_cleaner = nullptr;
  // Called on the sync thread after every apply, for each family with the frontends whose plan may
  // be another one now, whether the kernel took them or not.
  std::function<void(
      net::Family, const desired::DesiredState&, std::span<const desired::FrontendKey>)>
      frontends_changed = {};
  // Called on the sync thread after each turn in which something may have changed, and at the time
  // that its last call answered: whoever keeps a copy of the cluster's state on disk.
  std::function<std::optional<Clock::time_point>(const store::ObjectStore&)> keep = {};
  Observer* observer = nullptr;  // null: nobody; outlives the loop
};

struct FamilyBackend {
  net::Family family;
  std::unique_ptr<backend::Backend> backend;
};

class SyncLoop {
 public:
  SyncLoop(
      SyncOptions options,
      Mailboxes& mailboxes,
      std::vector<FamilyBackend> backends,
      Random random);

  void run();   // until stop()
  void stop();  // any thread

  // Any thread. Waits (up to `timeout`) until everything delivered before the call was applied or
  // has failed, and answers the status of then.
  std::shared_ptr<const Status> settle(Millis timeout);
  std::shared_ptr<const Status> status() const { return published_.latest(); }
  // Any thread. When the loop last came round; it does at least when it is poked. Longer ago than a
  // run takes: it is stuck.
  Clock::time_point heartbeat() const {
    return Clock::time_point(Clock::duration(heartbeat_.load()));
  }
  void poke() { mailboxes_.wake.ring(); }
  // Any thread. Nothing is left to do off this loop's path either for what was applied.
  bool backends_idle() const;

 private:
  struct Pipeline {
    net::Family family = net::Family::IPv4;
    std::unique_ptr<backend::Backend> backend;
    std::optional<net::IpAddress> node_ip;
    std::map<kube::ObjectKey, WithoutLocal> without_local;  // Services that have such ports
    WithoutLocal without_local_sum;
    desired::DesiredState wanted;
    backend::Delta delta;  // what the next apply must look at
    std::set<desired::FrontendKey> set_aside;
    FlowHandover flows;
    bool had_holes = false;  // somebody took rules away, and no apply has brought them back yet
    std::vector<std::int64_t> trigger_times_ns;  // of changes that are not in the kernel yet
  };

  bool ready();
  bool node_known_or_given_up();
  void give_up(const Error& error);
  void prepare();
  void prepare(Pipeline& pipeline);
  std::size_t plan();  // how many Services it looked at
  void follow_node();
  void plan_service(
      const kube::ObjectKey& key, std::span<const std::int64_t> trigger_times_ns = {});
  void plan_service(
      Pipeline& pipeline,
      const kube::ObjectKey& key,
      const kube::Service* service,
      std::span<const store::SlicePtr> slices,
      std::span<const std::int64_t> trigger_times_ns);
  void count_without_local(Pipeline& pipeline, const kube::ObjectKey& key, const WithoutLocal& now);
  void plan_ranges();
  bool apply();
  bool apply(Pipeline& pipeline);
  backend::ApplyReport apply_measured(Pipeline& pipeline, const backend::Delta& delta);
  void tell_programmed(Pipeline& pipeline);
  bool take_drift();
  void request_runs(bool may_run);
  void run_once();
  std::optional<Clock::time_point> next_turn(bool may_run) const;
  void publish(bool idle);
  void wait(std::optional<Clock::time_point> until);

  SyncOptions options_;
  Observer nobody_;
  Observer& observer_;
  Reporter reporter_;
  Mailboxes& mailboxes_;
  std::vector<Pipeline> pipelines_;
  store::ObjectStore store_;
  topology::NodeTopology node_;
  Pacing pacing_;
  bool started_ = false;  // the gate of ready() was passed
  bool gave_up_ = false;
  node::StartUpWait start_up_;
  std::set<kube::ObjectKey> postponed_;  // touched before the gate, and not planned yet
  bool says_it_waits_ = false;
  std::vector<std::string> pod_cidrs_;          // of the Node, the last that were known
  std::vector<net::IpAddress> node_addresses_;  // the last that were known
  bool synced_ = false;
  bool last_run_failed_ = false;
  Clock::time_point set_aside_due_{};
  std::optional<Clock::time_point> again_at_;  // a back end has something left to do
  std::optional<Clock::time_point> keep_at_;
  Status counters_;
  Published<Status> published_;
  std::atomic<Clock::rep> heartbeat_ = Clock::now().time_since_epoch().count();

  std::mutex mutex_;
  std::condition_variable settled_;
  std::uint64_t tickets_ = 0;    // settle() calls so far
  std::uint64_t completed_ = 0;  // of those, answered
  bool stopping_ = false;
};

}  // namespace shunt::sync
