// Removes stale UDP flows, and untranslated ones, on a thread of its own ("conntrack"), so that a
// large table never delays the rules. Each pass is one stream over the table, of which nothing is
// kept but some hundred flows that are about to be removed.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backend/conntrack/flow_table.h"
#include "backend/conntrack/stale_flows.h"
#include "backend/flow_cleaner.h"
#include "base/backoff.h"

namespace shunt::backend::conntrack {

struct Counters {
  std::uint64_t passes = 0;
  std::uint64_t failures = 0;  // of those passes
  std::uint64_t scanned = 0;   // flows looked at
  std::uint64_t deleted = 0;
  std::chrono::microseconds last_duration{};
};

class Reconciler : public FlowCleaner {
 public:
  // Called on the reconciler's thread after each pass that went well.
  using OnPass = std::function<void(net::Family, std::chrono::nanoseconds took)>;

  Reconciler(std::unique_ptr<FlowTable> table, Random random, OnPass on_pass = {});
  ~Reconciler() override;
  Reconciler(const Reconciler&) = delete;
  Reconciler& operator=(const Reconciler&) = delete;

  void start();
  void stop();  // lets a listing that is under way come to its end; what is left undone stays so

  // Any thread.
  void changing(net::Family family, const std::vector<desired::FrontendKey>& frontends) override;
  void changed(net::Family family, std::vector<ServingChange> changes) override;
  void untranslated(
      net::Family family,
      std::shared_ptr<const std::vector<desired::FrontendKey>> frontends) override;
  bool idle() const override;
  Counters counters(net::Family family) const;

 private:
  using Frontends = std::shared_ptr<const std::vector<desired::FrontendKey>>;
  using Changes = std::unordered_map<desired::FrontendKey, std::optional<desired::EndpointListPtr>>;
  struct OfFamily {
    StaleFlows frontends;  // the thread's own; everything else is under the mutex
    Changes pending;       // the last word on each frontend
    std::unordered_set<desired::FrontendKey> changing;  // no word yet
    Frontends untranslated;                             // to look for; null: no need
    bool due = false;                                   // a pass is
    Counters counters;
  };

  void run();
  bool anything_due() const;
  bool run_passes(std::unique_lock<std::mutex>& lock);
  // `untranslated` may be null.
  Result<> pass(net::Family family, const Frontends& untranslated, Counters& now);
  void learn(OfFamily& here);
  void keep_stale_ones(
      OfFamily& here,
      const LocalAddresses& local,
      const Frontends& untranslated,
      std::vector<Flow>& flows);
  bool stopping() const;
  OfFamily& of(net::Family family) { return families_[static_cast<std::size_t>(family)]; }
  const OfFamily& of(net::Family family) const {
    return families_[static_cast<std::size_t>(family)];
  }

  std::unique_ptr<FlowTable> table_;
  OnPass on_pass_;
  Backoff backoff_;
  std::thread thread_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::array<OfFamily, 2> families_;
  bool working_ = false;
  bool stopping_ = false;
};

}  // namespace shunt::backend::conntrack
