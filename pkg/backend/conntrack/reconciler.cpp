#include "backend/conntrack/reconciler.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "backend/conntrack/untranslated_flows.h"
#include "base/log.h"

namespace shunt::backend::conntrack {
namespace {

using log::kv;

constexpr net::Family kFamilies[] = {net::Family::IPv4, net::Family::IPv6};
// A packet that met the old rules a moment ago may not be in the table yet.
constexpr Millis kPacketsInFlight{5};
// Constant change costs half a core at most, and a stale flow waits this long at most.
constexpr Millis kLongestRest{1000};
constexpr int kAttempts = 5;  // at a table that changes while it is listed
constexpr std::size_t kBatch = 256;
constexpr int kNiceness = 5;  // rules come first where there is one core

bool is_lost(
    const Flow& flow,
    const std::shared_ptr<const std::vector<desired::FrontendKey>>& untranslated,
    const LocalAddresses& local) {
  return untranslated != nullptr && is_untranslated(flow, *untranslated, local);
}

bool was_interrupted(const Result<>& scanned) {
  return !scanned && scanned.error().sys_errno == EINTR;
}

}  // namespace

Reconciler::Reconciler(std::unique_ptr<FlowTable> table, Random random, OnPass on_pass)
    : table_(std::move(table)),
      on_pass_(std::move(on_pass)),
      backoff_({Millis{100}, Millis{15'000}, Millis{24 * 3600 * 1000}}, std::move(random)) {}

Reconciler::~Reconciler() { stop(); }

void Reconciler::start() {
  thread_ = std::thread([this] {
    (void)::pthread_setname_np(::pthread_self(), "conntrack");  // a name is a nicety
    (void)::setpriority(PRIO_PROCESS, 0, kNiceness);  // of this thread; without it we are not wrong
    run();
  });
}

void Reconciler::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Reconciler::changing(net::Family family, const std::vector<desired::FrontendKey>& frontends) {
  const std::lock_guard lock(mutex_);
  of(family).changing.insert(frontends.begin(), frontends.end());
}

void Reconciler::changed(net::Family family, std::vector<ServingChange> changes) {
  {
    const std::lock_guard lock(mutex_);
    OfFamily& here = of(family);
    for (ServingChange& change : changes) {
      here.changing.erase(change.frontend);
      here.pending.insert_or_assign(change.frontend, std::move(change.serving));
    }
    here.due = true;
  }
  wake_.notify_all();
}

void Reconciler::untranslated(net::Family family, Frontends frontends) {
  {
    const std::lock_guard lock(mutex_);
    of(family).untranslated = std::move(frontends);
    of(family).due = true;
  }
  wake_.notify_all();
}

bool Reconciler::idle() const {
  const std::lock_guard lock(mutex_);
  return !working_ && !anything_due();
}

Counters Reconciler::counters(net::Family family) const {
  const std::lock_guard lock(mutex_);
  return of(family).counters;
}

bool Reconciler::anything_due() const {
  return std::ranges::any_of(families_, [](const OfFamily& family) { return family.due; });
}

bool Reconciler::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void Reconciler::run() {
  std::unique_lock lock(mutex_);
  Clock::time_point not_before{};
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || anything_due(); });
    not_before = std::max(not_before, Clock::now() + kPacketsInFlight);
    if (wake_.wait_until(lock, not_before, [&] { return stopping_; })) {
      return;
    }
    const Clock::time_point started = Clock::now();
    const bool done = run_passes(lock);
    const Clock::time_point ended = Clock::now();
    not_before = ended + std::min<Clock::duration>(ended - started, kLongestRest);
    if (done) {
      backoff_.reset();
    } else {
      not_before = std::max(not_before, ended + backoff_.next(ended));
    }
  }
}

// Gives the lock away while it works.
bool Reconciler::run_passes(std::unique_lock<std::mutex>& lock) {
  bool done = true;
  for (const net::Family family : kFamilies) {
    OfFamily& here = of(family);
    if (!here.due || stopping_) {
      continue;
    }
    here.due = false;
    working_ = true;
    Frontends untranslated = std::exchange(here.untranslated, nullptr);
    lock.unlock();
    learn(here);
    Counters now;
    const bool nothing_to_find = here.frontends.empty() && untranslated == nullptr;
    const Result<> outcome = nothing_to_find ? Result<>() : pass(family, untranslated, now);
    if (!outcome) {
      log::warn(
          "stale flows could not be removed, will retry",
          {kv("family", net::to_string(family)), kv("error", outcome.error().what)});
    } else if (on_pass_ && now.passes > 0) {
      on_pass_(family, now.last_duration);
    }
    lock.lock();
    working_ = false;
    here.due = here.due || !outcome;
    if (!outcome && here.untranslated == nullptr) {
      here.untranslated = std::move(untranslated);
    }
    here.counters.passes += now.passes;
    here.counters.failures += outcome ? 0 : 1;
    here.counters.scanned += now.scanned;
    here.counters.deleted += now.deleted;
    if (now.passes > 0) {
      here.counters.last_duration = now.last_duration;
    }
    done = done && outcome;
  }
  return done;
}

Result<> Reconciler::pass(net::Family family, const Frontends& untranslated, Counters& now) {
  OfFamily& here = of(family);
  const Clock::time_point started = Clock::now();
  now.passes = 1;
  const auto local = table_->local_addresses();
  if (!local) {
    return tl::unexpected(local.error());
  }
  Result<> removed;
  std::vector<Flow> stale;
  stale.reserve(kBatch);
  const auto remove = [&] {
    keep_stale_ones(here, *local, untranslated, stale);
    FlowTable::Removal removal = table_->remove(family, stale);
    now.deleted += removal.removed;
    if (!removal.outcome) {
      removed = std::move(removal.outcome);
    }
    stale.clear();
  };
  Result<> scanned;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto which = untranslated ? FlowTable::Which::All : FlowTable::Which::Udp;
    scanned = table_->scan(family, which, [&](const Flow& flow) {
      ++now.scanned;
      if (here.frontends.is_stale(flow, *local) || is_lost(flow, untranslated, *local)) {
        stale.push_back(flow);
        if (stale.size() == kBatch) {
          remove();
        }
      }
    });
    if (!stale.empty()) {
      remove();
    }
    if (!was_interrupted(scanned) || stopping()) {
      break;
    }
  }
  now.last_duration = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - started);
  log::debug(
      untranslated ? "looked for stale UDP flows, and untranslated ones"
                   : "looked for stale UDP flows",
      {kv("family", net::to_string(family)),
       kv("flows", now.scanned),
       kv("removed", now.deleted),
       kv("microseconds", now.last_duration.count())});
  if (!scanned && !was_interrupted(scanned)) {
    return scanned;
  }
  return removed;
}

void Reconciler::learn(OfFamily& here) {
  Changes changes;
  {
    const std::lock_guard lock(mutex_);
    changes.swap(here.pending);
  }
  for (auto& [key, serving] : changes) {
    if (serving) {
      here.frontends.set(key, std::move(*serving));
    } else {
      here.frontends.erase(key);
    }
  }
}

// A pass over a large table takes long enough for the rules to change meanwhile. What is about to
// be removed is judged again by the newest word, and let go where a word is still to come or was
// not heard yet: it may be a new flow, to an endpoint that the pass knows nothing of. Untranslated
// ones lead to no endpoint at all, whatever the frontend's are now.
void Reconciler::keep_stale_ones(
    OfFamily& here,
    const LocalAddresses& local,
    const Frontends& untranslated,
    std::vector<Flow>& flows) {
  learn(here);
  const std::lock_guard lock(mutex_);
  const auto in_doubt = [&](const desired::FrontendKey& key) {
    return here.changing.contains(key) || here.pending.contains(key);
  };
  std::erase_if(flows, [&](const Flow& flow) {
    if (is_lost(flow, untranslated, local)) {
      return false;
    }
    const net::SocketAddress& to = flow.original.to;
    return in_doubt({to.ip, net::Protocol::Udp, to.port}) ||
           in_doubt(desired::node_port_key(to.ip.family, net::Protocol::Udp, to.port)) ||
           !here.frontends.is_stale(flow, local);
  });
}

}  // namespace shunt::backend::conntrack
