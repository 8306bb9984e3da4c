// Drains what the watches delivered, re-plans the Services it touches, and applies the difference.
// One thread owns the store, the desired state and the back ends; it is the thread that calls
// run().
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/mailbox.h"
#include "base/published.h"
#include "desired/desired_state.h"
#include "net/cidr.h"
#include "store/object_store.h"
#include "sync/pacing.h"
#include "sync/status.h"
#include "topology/categorize.h"

namespace shunt::sync {

// The doors from the watch threads.
struct Mailboxes {
  WakeFd wake;
  Mailbox<std::shared_ptr<const kube::Service>> services{wake};
  Mailbox<std::shared_ptr<const kube::EndpointSlice>> slices{wake};
  Mailbox<std::shared_ptr<const kube::Node>> nodes{wake};
  Mailbox<std::shared_ptr<const kube::ServiceCidr>> service_cidrs{wake};
};

struct SyncOptions {
  std::string node_name;
  Pacing::Periods periods;
  // Ranges that tell traffic of local pods: `cluster_cidrs`, or the Node's podCIDRs, which the
  // first write then waits for. A family without a range cannot tell: nothing of it is masqueraded
  // for being from outside.
  std::vector<net::Cidr> cluster_cidrs;
  bool node_cidrs = false;
  Millis node_patience{10'000};  // how long the first write waits for the Node
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

 private:
  struct Pipeline {
    net::Family family;
    std::unique_ptr<backend::Backend> backend;
    desired::DesiredState wanted;
    backend::Delta delta;  // what the next apply must look at
    std::set<desired::FrontendKey> set_aside;
  };

  void drain();
  bool ready();
  bool node_known_or_given_up();
  void plan();
  void plan_service(Pipeline& pipeline, const kube::ObjectKey& key);
  void plan_ranges();
  bool apply();
  bool apply(Pipeline& pipeline);
  void report_issues(
      const kube::ObjectKey& key, net::Family family, std::vector<std::string> issues);
  void publish(bool idle);
  void wait(std::optional<Clock::time_point> until);

  SyncOptions options_;
  Mailboxes& mailboxes_;
  std::vector<Pipeline> pipelines_;
  store::ObjectStore store_;
  topology::NodeTopology node_;
  Pacing pacing_;
  bool started_ = false;  // the gate of ready() was passed
  bool waiting_for_node_ = false;
  std::optional<Clock::time_point> node_patience_;  // running out
  bool synced_ = false;
  bool last_run_failed_ = false;
  Clock::time_point set_aside_due_{};
  Status counters_;
  std::map<std::pair<kube::ObjectKey, net::Family>, std::vector<std::string>> issues_;
  Published<Status> published_;

  std::mutex mutex_;
  std::condition_variable settled_;
  std::uint64_t tickets_ = 0;    // settle() calls so far
  std::uint64_t completed_ = 0;  // of those, answered
  bool stopping_ = false;
};

}  // namespace shunt::sync
