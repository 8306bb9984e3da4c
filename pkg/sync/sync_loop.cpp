#include "sync/sync_loop.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "desired/planner.h"

namespace shunt::sync {
namespace {

using log::kv;

// Takes a mailbox's content into the store.
template <typename T, typename Upsert, typename Remove, typename Replace>
void take(
    Mailbox<std::shared_ptr<const T>>& box,
    const Upsert& upsert,
    const Remove& remove,
    const Replace& replace) {
  auto mail = box.drain();
  if (mail.replacement) {
    std::vector<std::shared_ptr<const T>> all;
    all.reserve(mail.replacement->size());
    for (auto& [key, object] : *mail.replacement) {
      all.push_back(std::move(object));
    }
    replace(std::move(all));
  }
  for (auto& [key, object] : mail.changes) {
    if (object) {
      upsert(std::move(*object));
    } else {
      remove(key);
    }
  }
}

kube::ObjectKey key_of(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) {
    return {"", text};
  }
  return {text.substr(0, slash), text.substr(slash + 1)};
}

net::Cidr whole_range(net::Family family) { return {net::IpAddress{family, {}}, 0}; }

std::vector<net::Cidr> of_family(const std::vector<std::string>& texts, net::Family family) {
  std::vector<net::Cidr> out;
  for (const std::string& text : texts) {
    const auto cidr = net::parse_cidr(text);
    if (cidr && cidr->base.family == family) {
      out.push_back(*cidr);
    }
  }
  return out;
}

}  // namespace

SyncLoop::SyncLoop(
    SyncOptions options, Mailboxes& mailboxes, std::vector<FamilyBackend> backends, Random random)
    : options_(std::move(options)),
      mailboxes_(mailboxes),
      node_{options_.node_name, ""},
      pacing_(options_.periods, std::move(random)) {
  for (FamilyBackend& backend : backends) {
    Pipeline pipeline{backend.family, std::move(backend.backend), {}, {}, {}};
    pipeline.delta.everything = true;
    pipelines_.push_back(std::move(pipeline));
  }
  published_.publish(std::make_shared<const Status>());
}

void SyncLoop::drain() {
  take(
      mailboxes_.services,
      [&](store::ServicePtr s) { store_.upsert(std::move(s)); },
      [&](const std::string& key) { store_.remove_service(key_of(key)); },
      [&](std::vector<store::ServicePtr> all) { store_.replace_services(std::move(all)); });
  take(
      mailboxes_.slices,
      [&](store::SlicePtr s) { store_.upsert(std::move(s)); },
      [&](const std::string& key) { store_.remove_slice(key_of(key)); },
      [&](std::vector<store::SlicePtr> all) { store_.replace_slices(std::move(all)); });
  take(
      mailboxes_.nodes,
      [&](std::shared_ptr<const kube::Node> n) { store_.upsert(std::move(n)); },
      [&](const std::string&) { store_.remove_node(); },
      [&](auto all) { store_.replace_nodes(std::move(all)); });
  take(
      mailboxes_.service_cidrs,
      [&](std::shared_ptr<const kube::ServiceCidr> c) { store_.upsert(std::move(c)); },
      [&](const std::string& key) { store_.remove_service_cidr(key_of(key)); },
      [&](auto all) { store_.replace_service_cidrs(std::move(all)); });
}

// spec/semantics.md §8: no write before Services and EndpointSlices are complete. The Node is
// waited for as well, for a while (spec/config.md §5): without its zone a restart would undo the
// work of the hints and do it again. With NodeCIDR its ranges are needed: without them every pod
// would be taken for an outsider.
bool SyncLoop::ready() {
  if (started_) {
    return true;
  }
  if (!store_.complete() || !node_known_or_given_up()) {
    return false;
  }
  const kube::Node* node = store_.node();
  if (options_.node_cidrs && (node == nullptr || node->pod_cidrs.empty())) {
    if (!waiting_for_node_) {
      log::warn("waiting for the Node's podCIDRs", {kv("node", options_.node_name)});
      waiting_for_node_ = true;
    }
    return false;
  }
  log::info(
      "Services and EndpointSlices are complete", {kv("services", store_.service_keys().size())});
  started_ = true;
  pacing_.request();  // an empty cluster has nothing that changed, and is synced all the same
  return true;
}

bool SyncLoop::node_known_or_given_up() {
  const Clock::time_point now = Clock::now();
  if (!store_.node_listed()) {
    if (!node_patience_) {
      node_patience_ = now + options_.node_patience;
    }
    if (now < *node_patience_) {
      return false;
    }
    log::warn("the Node is not known yet, going on without it", {kv("node", options_.node_name)});
  }
  node_patience_.reset();
  return true;
}

void SyncLoop::report_issues(
    const kube::ObjectKey& key, net::Family family, std::vector<std::string> issues) {
  const auto at = issues_.find({key, family});
  if (at != issues_.end() && at->second == issues) {
    return;
  }
  for (const std::string& issue : issues) {
    log::warn(
        "part of a Service was set aside",
        {kv("service", to_string(key)), kv("family", net::to_string(family)), kv("why", issue)});
  }
  if (issues.empty()) {
    issues_.erase({key, family});
  } else {
    issues_.insert_or_assign({key, family}, std::move(issues));
  }
}

void SyncLoop::plan_service(Pipeline& pipeline, const kube::ObjectKey& key) {
  const store::ServicePtr service = store_.service(key);
  const std::vector<store::SlicePtr> slices = store_.slices_of(key);
  desired::ServicePlan plan = desired::plan_service(service.get(), slices, pipeline.family, node_);
  report_issues(key, pipeline.family, std::move(plan.issues));
  std::vector<desired::Conflict> conflicts;
  pipeline.wanted.set_service(key, std::move(plan.claims), pipeline.delta.frontends, conflicts);
  for (const desired::Conflict& conflict : conflicts) {
    log::warn(
        "two Services claim one address, the older one has it",
        {kv("frontend", to_string(conflict.key)),
         kv("winner", conflict.winner),
         kv("loser", conflict.loser)});
  }
}

void SyncLoop::plan_ranges() {
  const kube::Node* node = store_.node();
  for (Pipeline& pipeline : pipelines_) {
    if (store_.service_cidrs_listed()) {
      pipeline.wanted.service_cidrs = of_family(store_.service_cidrs(), pipeline.family);
    }
    std::vector<net::Cidr> pods;
    if (options_.node_cidrs && node != nullptr) {
      pods = of_family(node->pod_cidrs, pipeline.family);
    } else {
      std::copy_if(
          options_.cluster_cidrs.begin(),
          options_.cluster_cidrs.end(),
          std::back_inserter(pods),
          [&](const net::Cidr& cidr) { return cidr.base.family == pipeline.family; });
    }
    // spec/config.md §7: only the first range of a family counts.
    pods.resize(std::min<std::size_t>(pods.size(), 1));
    if (pods.empty()) {
      pods.push_back(whole_range(
          pipeline.family));  // whoever sends counts as a local pod: nothing is masqueraded
    }
    pipeline.wanted.pod_cidrs = std::move(pods);
    pipeline.delta.ranges = true;
  }
}

void SyncLoop::plan() {
  const kube::Node* node = store_.node();
  const std::string zone = node != nullptr ? node->zone.value_or("") : std::string();
  if (zone != node_.zone) {
    log::info("zone of the node", {kv("zone", zone)});
    node_.zone = zone;
    store_.touch_all_services();
  }
  const store::Changes changes = store_.take_changes();
  for (const kube::ObjectKey& key : changes.services) {
    for (Pipeline& pipeline : pipelines_) {
      plan_service(pipeline, key);
    }
  }
  if (changes.service_cidrs || changes.node || !synced_) {
    plan_ranges();
  }
}

bool SyncLoop::apply(Pipeline& pipeline) {
  backend::Delta delta = std::exchange(pipeline.delta, {});
  const backend::ApplyReport report = pipeline.backend->apply(pipeline.wanted, delta);
  const auto family = kv("family", net::to_string(pipeline.family));
  counters_.commits += report.commits;
  counters_.messages += report.messages;
  counters_.bytes += report.bytes;
  for (const backend::Refusal& refusal : report.set_aside) {
    const desired::FrontendPlan* plan = pipeline.wanted.find(refusal.frontend);
    if (pipeline.set_aside.insert(refusal.frontend).second) {
      log::error(
          "the kernel refuses a Service, it is set aside",
          {family,
           kv("service", plan != nullptr ? plan->service : "?"),
           kv("frontend", to_string(refusal.frontend)),
           kv("error", refusal.error.what)});
    }
  }
  for (const desired::FrontendKey& key : report.accepted) {
    pipeline.set_aside.erase(key);
    log::info(
        "the kernel took a Service that was set aside", {family, kv("frontend", to_string(key))});
  }
  if (report.outcome) {
    log::debug(
        "applied",
        {family,
         kv("frontends", delta.frontends.size()),
         kv("messages", report.messages),
         kv("bytes", report.bytes)});
    return true;
  }
  pipeline.delta.everything = report.retry_everything;
  pipeline.delta.frontends = report.retry;
  pipeline.delta.ranges = delta.ranges || report.retry_everything;
  counters_.error = report.outcome.error().what;
  log::warn(
      "apply failed, will retry",
      {family, kv("error", counters_.error), kv("keys", report.retry.size())});
  return false;
}

bool SyncLoop::apply() {
  counters_.error.clear();
  bool succeeded = true;
  // What the kernel refused is tried again now and then, and whenever its plan changes; not in
  // every run, which it would make fail and start over.
  const Clock::time_point now = Clock::now();
  const bool again = now >= set_aside_due_;
  if (again) {
    set_aside_due_ = now + options_.periods.retry_set_aside;
  }
  for (Pipeline& pipeline : pipelines_) {
    if (again) {
      pipeline.delta.frontends.insert(
          pipeline.delta.frontends.end(), pipeline.set_aside.begin(), pipeline.set_aside.end());
    }
    succeeded = apply(pipeline) && succeeded;
  }
  if (succeeded && !synced_) {
    synced_ = true;
    log::info(
        "first sync done",
        {kv("commits", counters_.commits),
         kv("messages", counters_.messages),
         kv("bytes", counters_.bytes)});
  }
  return succeeded;
}

void SyncLoop::publish(bool idle) {
  auto status = std::make_shared<Status>(counters_);
  status->synced = synced_;
  status->idle = idle;
  for (const Pipeline& pipeline : pipelines_) {
    status->frontends += pipeline.wanted.size();
    status->set_aside += pipeline.set_aside.size();
    status->conflicts += pipeline.wanted.conflicts();
  }
  published_.publish(std::move(status));
}

void SyncLoop::wait(std::optional<Clock::time_point> until) {
  int timeout = -1;
  if (until) {
    const auto left = std::chrono::ceil<Millis>(*until - Clock::now()).count();
    timeout = static_cast<int>(std::clamp<Millis::rep>(left, 0, 60'000));
  }
  pollfd descriptor{mailboxes_.wake.fd(), POLLIN, 0};
  (void)::poll(&descriptor, 1, timeout);  // EINTR: we look around and wait again
  mailboxes_.wake.clear();
}

void SyncLoop::run() {
  for (;;) {
    std::uint64_t ticket = 0;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) {
        settled_.notify_all();
        return;
      }
      ticket = tickets_;
    }
    drain();
    if (ready() && store_.has_changes()) {
      pacing_.request();
    }
    const auto due = pacing_.due(Clock::now());
    if (due && *due <= Clock::now()) {
      plan();
      last_run_failed_ = !apply();
      bool set_aside = false;
      for (const Pipeline& pipeline : pipelines_) {
        set_aside = set_aside || !pipeline.set_aside.empty();
      }
      pacing_.ran(Clock::now(), !last_run_failed_, set_aside);
    }
    if (!pacing_.requested()) {
      publish(synced_ && !last_run_failed_);
      const std::lock_guard lock(mutex_);
      completed_ = ticket;
      settled_.notify_all();
    }
    const auto next = pacing_.due(Clock::now());
    wait(next ? next : node_patience_);
  }
}

void SyncLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  mailboxes_.wake.ring();
}

std::shared_ptr<const Status> SyncLoop::settle(Millis timeout) {
  std::unique_lock lock(mutex_);
  const std::uint64_t ticket = ++tickets_;
  mailboxes_.wake.ring();
  settled_.wait_for(lock, timeout, [&] { return stopping_ || completed_ >= ticket; });
  return published_.latest();
}

}  // namespace shunt::sync
