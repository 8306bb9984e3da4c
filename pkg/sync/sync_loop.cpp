#include "sync/sync_loop.h"

#include <poll.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/log.h"
#include "base/memory.h"
#include "desired/planner.h"
#include "node/local_traffic.h"
#include "node/node_port_ranges.h"
#include "node/own_addresses.h"
#include "node/ranges.h"

namespace shunt::sync {
namespace {

using log::kv;

// Services of one run whose memory is worth a few milliseconds.
constexpr std::size_t kManyServices = 500;

}  // namespace

SyncLoop::SyncLoop(
    SyncOptions options, Mailboxes& mailboxes, std::vector<FamilyBackend> backends, Random random)
    : options_(std::move(options)),
      mailboxes_(mailboxes),
      node_{options_.node_name, ""},
      pacing_(options_.periods, std::move(random)),
      start_up_(options_.node_cidrs, {options_.node_patience, options_.pod_cidrs_patience}) {
  for (FamilyBackend& backend : backends) {
    Pipeline pipeline;
    pipeline.family = backend.family;
    pipeline.backend = std::move(backend.backend);
    pipeline.delta.everything = true;
    pipelines_.push_back(std::move(pipeline));
  }
  published_.publish(std::make_shared<const Status>());
}

// spec/semantics.md §8: no write before Services and EndpointSlices are complete. The Node is
// waited for as well, for a while (spec/config.md §5): without its zone a restart would undo the
// work of the hints and do it again, and without its addresses nobody knows where NodePorts answer.
bool SyncLoop::ready() {
  if (gave_up_ || (!started_ && (!store_.complete() || !node_known_or_given_up()))) {
    return false;
  }
  const kube::Node* node = store_.node();
  if (!started_) {
    log::info("Services and EndpointSlices are complete", {kv("services", store_.service_count())});
    started_ = true;
    pod_cidrs_at_start_ = node != nullptr ? node->pod_cidrs : std::vector<std::string>{};
    pacing_.request();  // an empty cluster has nothing that changed, and is synced all the same
  }
  if (node::needs_restart(options_.node_cidrs, pod_cidrs_at_start_, node)) {
    give_up({Errc::Stale, 0, "the podCIDRs of Node " + options_.node_name + " changed"});
    return false;
  }
  return true;
}

bool SyncLoop::node_known_or_given_up() {
  using Verdict = node::StartUpWait::Verdict;
  const kube::Node* node = store_.node();
  switch (start_up_.look(node, Clock::now())) {
    case Verdict::Wait:
      if (start_up_.waits_for_pod_cidrs() && !std::exchange(says_it_waits_, true)) {
        log::warn("waiting for the Node's podCIDRs", {kv("node", options_.node_name)});
      }
      return false;
    case Verdict::NodeMissing:
      give_up({Errc::NotFound, 0, "timeout waiting for Node " + options_.node_name + " to exist"});
      return false;
    case Verdict::PodRangesMissing:
      give_up(
          {Errc::NotFound, 0, "timeout waiting for the podCIDRs of Node " + options_.node_name});
      return false;
    case Verdict::Start:
      if (node == nullptr || node::addresses_of(*node).empty()) {
        log::warn(
            node == nullptr ? "the Node is not known yet, going on without it"
                            : "the Node has no address yet, going on without one",
            {kv("node", options_.node_name)});
      }
      return true;
  }
  return false;
}

void SyncLoop::give_up(const Error& error) {
  gave_up_ = true;
  log::error("only a restart can help", {kv("error", error.what)});
  if (options_.give_up) {
    options_.give_up(error);
  }
}

void SyncLoop::report_issues(
    const kube::ObjectKey& key, net::Family family, std::vector<std::string> issues) {
  if (issues.empty() && issues_.empty()) {
    return;
  }
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

void SyncLoop::plan_service(const kube::ObjectKey& key) {
  const store::ServicePtr service = store_.service(key);
  const std::vector<store::SlicePtr> slices = store_.slices_of(key);
  for (Pipeline& pipeline : pipelines_) {
    plan_service(pipeline, key, service.get(), slices);
  }
}

void SyncLoop::plan_service(
    Pipeline& pipeline,
    const kube::ObjectKey& key,
    const kube::Service* service,
    std::span<const store::SlicePtr> slices) {
  desired::ServicePlan plan =
      desired::plan_service(service, slices, pipeline.family, {node_, pipeline.node_ip});
  report_issues(key, pipeline.family, std::move(plan.issues));
  count_without_local(pipeline, key, {plan.internal_without_local, plan.external_without_local});
  std::vector<desired::Conflict> conflicts;
  pipeline.wanted.set_service(
      key, std::move(plan.seniority), std::move(plan.claims), pipeline.delta.frontends, conflicts);
  for (const desired::Conflict& conflict : conflicts) {
    log::warn(
        "two Services claim one address, the older one has it",
        {kv("frontend", to_string(conflict.key)),
         kv("winner", conflict.winner),
         kv("loser", conflict.loser)});
  }
}

void SyncLoop::count_without_local(
    Pipeline& pipeline, const kube::ObjectKey& key, const WithoutLocal& now) {
  WithoutLocal& sum = pipeline.without_local_sum;
  if (const auto before = pipeline.without_local.extract(key)) {
    sum.internal -= before.mapped().internal;
    sum.external -= before.mapped().external;
  }
  if (now.internal != 0 || now.external != 0) {
    pipeline.without_local.emplace(key, now);
    sum.internal += now.internal;
    sum.external += now.external;
  }
}

void SyncLoop::plan_ranges() {
  const kube::Node* node = store_.node();
  const std::span<const std::string> node_pod_cidrs =
      node != nullptr ? std::span(node->pod_cidrs) : std::span<const std::string>();
  const bool primary = options_.node_ports.empty();
  const std::vector<net::Cidr> node_ports =
      primary ? node::primary_ranges(node::own_addresses(node_addresses_, options_.bind_address))
              : options_.node_ports;
  for (Pipeline& pipeline : pipelines_) {
    desired::DesiredState& wanted = pipeline.wanted;
    if (store_.service_cidrs_known()) {
      wanted.service_cidrs = node::of_family(store_.service_cidrs(), pipeline.family);
    }
    const auto pods = node::source_range(
        options_.node_cidrs, options_.cluster_cidrs, node_pod_cidrs, pipeline.family);
    wanted.pod_cidrs = pods ? std::vector{*pods} : std::vector<net::Cidr>{};
    // No address means every address, as in kube-proxy; but not while the API server has not said
    // so.
    const bool unknown =
        primary && !store_.node_listed() && node::of_family(node_ports, pipeline.family).empty();
    if (!unknown) {
      wanted.node_port_cidrs = node::node_port_ranges(node_ports, pipeline.family);
    }
    pipeline.delta.ranges = true;
  }
}

// A Node that loses its addresses keeps those that were known: opening NodePorts on all addresses
// for it would be worse.
void SyncLoop::follow_node() {
  const kube::Node* node = store_.node();
  bool decides_anew = false;
  if (const std::string zone = node::zone_of(node); zone != node_.zone) {
    log::info("zone of the node", {kv("zone", zone)});
    node_.zone = zone;
    decides_anew = true;
  }
  const auto addresses = node != nullptr ? node::addresses_of(*node) : node_addresses_;
  if (!addresses.empty()) {
    node_addresses_ = addresses;
  }
  const auto own = node::own_addresses(node_addresses_, options_.bind_address);
  for (Pipeline& pipeline : pipelines_) {
    const net::IpAddress& ip = own.of(pipeline.family);
    if (pipeline.node_ip != ip) {
      if (!net::is_loopback(ip)) {  // else it is the stand-in for not known
        log::info("address of the node", {kv("ip", net::to_string(ip))});
      }
      pipeline.node_ip = ip;
      decides_anew = true;
    }
  }
  if (decides_anew) {
    store_.touch_all_services();
  }
}

// While the lists are still coming: what is known of a Service is planned and the back ends get
// ready for it, so that little is left to do when the lists end. Nothing that a packet can see is
// written.
void SyncLoop::prepare() {
  // A plan without the zone would have to be made again.
  if (!gave_up_ && (store_.node() != nullptr || store_.node_listed())) {
    follow_node();
    for (const kube::ObjectKey& key : store_.take_changes().services) {
      if (store_.has_service_and_slice(key)) {
        postponed_.erase(key);
        plan_service(key);
      } else {
        postponed_.insert(key);
      }
    }
  }
  for (Pipeline& pipeline : pipelines_) {
    prepare(pipeline);  // to read what an earlier run left needs no plan
  }
}

void SyncLoop::prepare(Pipeline& pipeline) {
  const auto frontends =
      std::exchange(pipeline.delta.frontends, {});  // the first apply looks at all
  counters_.cost += pipeline.backend->prepare(pipeline.wanted, frontends);
}

std::size_t SyncLoop::plan() {
  follow_node();
  store::Changes changes = store_.take_changes();
  changes.services.merge(std::exchange(postponed_, {}));
  for (const kube::ObjectKey& key : changes.services) {
    plan_service(key);
  }
  if (changes.service_cidrs || changes.node || !synced_) {
    plan_ranges();
  }
  return changes.services.size();
}

bool SyncLoop::apply(Pipeline& pipeline) {
  backend::Delta delta = std::exchange(pipeline.delta, {});
  if (options_.flow_cleaner != nullptr) {
    pipeline.flows.about_to_apply(pipeline.family, pipeline.wanted, delta, *options_.flow_cleaner);
  }
  const backend::ApplyReport report = pipeline.backend->apply(pipeline.wanted, delta);
  if (options_.frontends_changed) {
    options_.frontends_changed(
        pipeline.wanted, delta.everything ? pipeline.wanted.keys() : delta.frontends);
  }
  const auto family = kv("family", net::to_string(pipeline.family));
  counters_.cost += report.cost;
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
  if (report.again_in) {
    const Clock::time_point at = Clock::now() + *report.again_in;
    again_at_ = again_at_ ? std::min(*again_at_, at) : at;
  }
  if (options_.flow_cleaner != nullptr) {
    pipeline.flows.applied(
        pipeline.family,
        pipeline.wanted,
        delta,
        report,
        pipeline.set_aside,
        *options_.flow_cleaner);
  }
  if (report.outcome) {
    log::debug(
        "applied",
        {family,
         kv("frontends", delta.frontends.size()),
         kv("messages", report.cost.messages),
         kv("bytes", report.cost.bytes)});
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
    const bool applied = apply(pipeline);
    if (applied) {
      counters_.without_local[pipeline.family] = pipeline.without_local_sum;
    }
    succeeded = applied && succeeded;
  }
  if (succeeded && !synced_) {
    synced_ = true;
    log::info(
        "first sync done",
        {kv("commits", counters_.cost.commits),
         kv("messages", counters_.cost.messages),
         kv("bytes", counters_.cost.bytes)});
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
    drain(mailboxes_, store_);
    const bool may_run = ready();
    if (!started_) {
      prepare();
    }
    if (may_run && store_.has_changes()) {
      pacing_.request();
    }
    if (again_at_ && *again_at_ <= Clock::now()) {
      again_at_.reset();
      pacing_.request();
    }
    const auto due = pacing_.due(Clock::now());
    if (may_run && due && *due <= Clock::now()) {
      const bool first = !synced_;
      const std::size_t services = plan();
      last_run_failed_ = !apply();
      if (first || services > kManyServices) {
        give_back_unused_memory();  // of what a list came in
      }
      bool set_aside = false;
      for (const Pipeline& pipeline : pipelines_) {
        set_aside = set_aside || !pipeline.set_aside.empty();
      }
      pacing_.ran(Clock::now(), !last_run_failed_, set_aside);
    }
    if (!may_run || !pacing_.requested()) {
      publish(may_run && synced_ && !last_run_failed_);
      const std::lock_guard lock(mutex_);
      completed_ = ticket;
      settled_.notify_all();
    }
    auto next = may_run ? pacing_.due(Clock::now()) : start_up_.due();
    if (may_run && again_at_ && (!next || *again_at_ < *next)) {
      next = again_at_;
    }
    wait(next);
  }
}

void SyncLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  mailboxes_.wake.ring();
}

bool SyncLoop::backends_idle() const {
  return std::all_of(
      pipelines_.begin(), pipelines_.end(), [](const auto& p) { return p.backend->idle(); });
}

std::shared_ptr<const Status> SyncLoop::settle(Millis timeout) {
  std::unique_lock lock(mutex_);
  const std::uint64_t ticket = ++tickets_;
  mailboxes_.wake.ring();
  settled_.wait_for(lock, timeout, [&] { return stopping_ || completed_ >= ticket; });
  return published_.latest();
}

}  // namespace shunt::sync
