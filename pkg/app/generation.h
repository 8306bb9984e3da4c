// The inner parts of the daemon for one configuration: sources, sync loop, kernel. Another
// configuration is another generation; the kernel's state stays between them, as it does over a
// restart.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/kernel.h"
#include "app/sources.h"
#include "health/readiness.h"
#include "obs/metrics.h"
#include "relay/relay.h"
#include "snapshot/keeper.h"
#include "sync/sync_loop.h"

namespace shunt::app {

class Generation {
 public:
  // What it works with and does not own; outlives it.
  struct Surroundings {
    sync::Observer* observer = nullptr;
    SourceHooks hooks;
    backend::conntrack::Reconciler::OnPass on_pass;
    relay::Relay* relay = nullptr;              // null: none
    std::function<void(const Error&)> give_up;  // on the sync thread
  };

  // Opens everything that can fail, and starts nothing.
  static Result<std::shared_ptr<Generation>> make(
      config::Options options, const Surroundings& surroundings);
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  void start();
  void stop();  // once; joins its threads

  // The API server is silent and the node has just booted: what was known last serves meanwhile.
  // Not when the kernel holds Services, which are newer. Call it while nothing was synced.
  void serve_snapshot();

  const config::Options& options() const { return options_; }
  const Sources& sources() const { return *sources_; }
  void tell(const kube::Notice& notice) { sources_->tell(notice); }
  void poke() { loop_->poke(); }  // any thread: the sync loop comes round
  Clock::time_point heartbeat() const { return loop_->heartbeat(); }

  // The rest from any thread, also after stop().
  std::string status();  // one line of JSON
  std::shared_ptr<const sync::Status> sync_status() const { return loop_->status(); }
  health::Readiness readiness();
  backend::conntrack::Counters conntrack(net::Family family) const {
    return reconciler_->counters(family);
  }
  // The busiest Services, at most `limit` of them.
  std::vector<obs::Suppliers::Connections> connections(std::size_t limit);

 private:
  explicit Generation(const config::Options& options) : options_(options) {}
  sync::SyncOptions sync_options(const Surroundings& surroundings);

  const config::Options options_;
  sync::Mailboxes mailboxes_;
  std::unique_ptr<Sources> sources_;
  std::unique_ptr<backend::conntrack::Reconciler> reconciler_;
  std::unique_ptr<snapshot::Keeper> keeper_;  // null: none
  std::unique_ptr<sync::SyncLoop> loop_;
  std::thread sync_thread_;

  std::mutex probe_mutex_;
  Probes probes_;
  Clock::time_point probed_{};
  bool hooks_present_ = false;  // as of then
  std::optional<bool> canary_;
  Clock::time_point counted_{};
  std::vector<obs::Suppliers::Connections> connections_;
};

}  // namespace shunt::app
