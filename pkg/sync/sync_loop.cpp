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

// Whether packets may have passed our rules by: something of them was taken away, something was put
// in their way, or nobody knows. An element that was added or altered redirects all the same.
bool makes_holes(const backend::Drift& drift) { return drift.removed || drift.kind != "element"; }

std::int64_t unix_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

SyncLoop::SyncLoop(
    SyncOptions options, Mailboxes& mailboxes, std::vector<FamilyBackend> backends, Random random)
    : options_(std::move(options)),
      observer_(options_.observer != nullptr ? *options_.observer : nobody_),
      reporter_(observer_),
      mailboxes_(mailboxes),
      store_(unix_nanoseconds()),
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
  if (!started_) {
    log::info("Services and EndpointSlices are complete", {kv("services", store_.service_count())});
    started_ = true;
    pacing_.request();  // an empty cluster has nothing that changed, and is synced all the same
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

void SyncLoop::plan_service(
    const kube::ObjectKey& key, std::span<const std::int64_t> trigger_times_ns) {
  const store::ServicePtr service = store_.service(key);
  const std::vector<store::SlicePtr> slices = store_.slices_of(key);
  for (Pipeline& pipeline : pipelines_) {
    plan_service(pipeline, key, service.get(), slices, trigger_times_ns);
  }
}

void SyncLoop::plan_service(
    Pipeline& pipeline,
    const kube::ObjectKey& key,
    const kube::Service* service,
    std::span<const store::SlicePtr> slices,
    std::span<const std::int64_t> trigger_times_ns) {
  desired::ServicePlan plan = desired::plan_service(
      service, slices, pipeline.family, {node_, pipeline.node_ip, options_.external_ips});
  const std::string uid = plan.seniority.uid;
  reporter_.issues(key, uid, pipeline.family, std::move(plan.issues));
  observer_.health_check_planned(pipeline.family, key, plan.health_check, uid);
  count_without_local(pipeline, key, {plan.internal_without_local, plan.external_without_local});
  if (!plan.claims.empty()) {
    pipeline.trigger_times_ns.insert(
        pipeline.trigger_times_ns.end(), trigger_times_ns.begin(), trigger_times_ns.end());
  }
  std::vector<desired::Conflict> conflicts;
  pipeline.wanted.set_service(
      key, std::move(plan.seniority), std::move(plan.claims), pipeline.delta.frontends, conflicts);
  for (const desired::Conflict& conflict : conflicts) {
    reporter_.conflict(key, uid, conflict);
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
        options_.node_cidrs, options_.cluster_cidrs, pod_cidrs_, pipeline.family);
    wanted.pod_cidrs = pods ? std::vector{*pods} : std::vector<net::Cidr>{};
    // No address means every address, as in kube-proxy; but not while the API server has not said
    // so.
    const bool unknown =
        primary && !store_.node_listed() && node::of_family(node_ports, pipeline.family).empty();
    if (!unknown) {
      wanted.node_port_cidrs = node::node_port_ranges(node_ports, pipeline.family);
      observer_.node_ports_planned(pipeline.family, *wanted.node_port_cidrs);
    }
    pipeline.delta.ranges = true;
  }
}

// A Node that loses its addresses or podCIDRs keeps those that were known: opening NodePorts on all
// addresses for it, or taking every pod for an outsider, would be worse. kube-proxy exits when
// podCIDRs change; here they are elements of a set.
void SyncLoop::follow_node() {
  const kube::Node* node = store_.node();
  if (node != nullptr && !node->pod_cidrs.empty() &&
      node::pod_cidrs_changed(options_.node_cidrs, pod_cidrs_, node)) {
    log::info("podCIDRs of the node", {kv("first", node->pod_cidrs.front())});
    pod_cidrs_ = node->pod_cidrs;
  }
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
    const auto times = changes.trigger_times_ns.find(key);
    plan_service(
        key,
        times == changes.trigger_times_ns.end() ? std::span<const std::int64_t>() : times->second);
  }
  if (changes.service_cidrs || changes.node || !synced_) {
    plan_ranges();
  }
  return changes.services.size();
}

backend::ApplyReport SyncLoop::apply_measured(Pipeline& pipeline, const backend::Delta& delta) {
  const Clock::time_point before = Clock::now();
  backend::ApplyReport report = pipeline.backend->apply(pipeline.wanted, delta);
  observer_.ran(
      pipeline.family,
      {report.outcome.has_value(),
       delta.everything || !synced_,
       Clock::now() - before,
       report.cost,
       pipeline.without_local_sum,
       report.rules});
  return report;
}

void SyncLoop::tell_programmed(Pipeline& pipeline) {
  if (pipeline.trigger_times_ns.empty()) {
    return;
  }
  const std::int64_t now = unix_nanoseconds();
  for (const std::int64_t at : std::exchange(pipeline.trigger_times_ns, {})) {
    observer_.programmed(pipeline.family, std::chrono::nanoseconds(now - at));
  }
}

bool SyncLoop::apply(Pipeline& pipeline) {
  backend::Delta delta = std::exchange(pipeline.delta, {});
  if (options_.flow_cleaner != nullptr) {
    pipeline.flows.about_to_apply(pipeline.family, pipeline.wanted, delta, *options_.flow_cleaner);
  }
  const backend::ApplyReport report = apply_measured(pipeline, delta);
  if (options_.frontends_changed) {
    options_.frontends_changed(
        pipeline.family,
        pipeline.wanted,
        delta.everything ? pipeline.wanted.keys() : delta.frontends);
  }
  const auto family = kv("family", net::to_string(pipeline.family));
  counters_.cost += report.cost;
  for (const backend::Refusal& refusal : report.set_aside) {
    if (pipeline.set_aside.insert(refusal.frontend).second) {
      reporter_.refused(pipeline.family, refusal, pipeline.wanted.find(refusal.frontend));
    }
  }
  for (const desired::FrontendKey& key : report.accepted) {
    pipeline.set_aside.erase(key);
    reporter_.accepted(pipeline.family, key);
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
    if (std::exchange(pipeline.had_holes, false) && options_.flow_cleaner != nullptr) {
      FlowHandover::repaired(pipeline.family, pipeline.wanted, *options_.flow_cleaner);
    }
    tell_programmed(pipeline);
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
    observer_.first_sync_done();
    log::info(
        "first sync done",
        {kv("commits", counters_.cost.commits),
         kv("messages", counters_.cost.messages),
         kv("bytes", counters_.cost.bytes)});
  }
  return succeeded;
}

// Whether others changed what is ours: the next apply puts it back.
bool SyncLoop::take_drift() {
  bool any = false;
  for (Pipeline& pipeline : pipelines_) {
    for (const backend::Drift& drift : pipeline.backend->take_drift()) {
      any = true;
      counters_.drift[{pipeline.family, drift.kind}] += drift.count;
      reporter_.drifted(pipeline.family, drift);
      pipeline.had_holes = pipeline.had_holes || makes_holes(drift);
    }
    any = any || pipeline.backend->has_news();
  }
  return any;
}

void SyncLoop::publish(bool idle) {
  auto status = std::make_shared<Status>(counters_);
  status->synced = synced_;
  status->idle = idle;
  for (const Pipeline& pipeline : pipelines_) {
    status->families[pipeline.family] = {
        pipeline.wanted.size(), pipeline.set_aside.size(), pipeline.wanted.conflicts()};
    if (const auto canary = pipeline.wanted.any(); idle && canary) {
      if (!pipeline.set_aside.contains(*canary)) {
        status->canaries.emplace(pipeline.family, *canary);
      }
    }
  }
  published_.publish(std::move(status));
}

void SyncLoop::wait(std::optional<Clock::time_point> until) {
  int timeout = -1;
  if (until) {
    const auto left = std::chrono::ceil<Millis>(*until - Clock::now()).count();
    timeout = static_cast<int>(std::clamp<Millis::rep>(left, 0, 60'000));
  }
  std::vector<pollfd> descriptors{{mailboxes_.wake.fd(), POLLIN, 0}};
  for (const Pipeline& pipeline : pipelines_) {
    descriptors.push_back({pipeline.backend->drift_fd(), POLLIN, 0});  // -1 is passed over
  }
  (void)::poll(  // EINTR: we look around and wait again
      descriptors.data(),
      descriptors.size(),
      timeout);
  mailboxes_.wake.clear();
}

// What there is reason for: mail, work that a back end left, others' changes.
void SyncLoop::request_runs(bool may_run) {
  if (may_run && store_.has_changes()) {
    if (!pacing_.requested()) {
      observer_.queued();
    }
    pacing_.request();
  }
  if (again_at_ && *again_at_ <= Clock::now()) {
    again_at_.reset();
    pacing_.request();
  }
  if (take_drift()) {
    pacing_.request_repair(Clock::now());
  }
}

void SyncLoop::run_once() {
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

// When there is something to do though nobody rings.
std::optional<Clock::time_point> SyncLoop::next_turn(bool may_run) const {
  auto next = may_run ? pacing_.due(Clock::now()) : start_up_.due();
  const auto not_later = [&](const std::optional<Clock::time_point>& at) {
    if (at && (!next || *at < *next)) {
      next = at;
    }
  };
  not_later(keep_at_);
  if (may_run) {
    not_later(again_at_);
  }
  return next;
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
    observer_.turned();
    heartbeat_ = Clock::now().time_since_epoch().count();
    if (const Drained mail = drain(mailboxes_, store_); mail.any()) {
      observer_.received(mail.services, mail.slices);
      if (mail.node) {
        observer_.node_seen(store_.node());
      }
    }
    const bool may_run = ready();
    if (!started_) {
      prepare();
    }
    request_runs(may_run);
    const auto due = pacing_.due(Clock::now());
    if (may_run && due && *due <= Clock::now()) {
      run_once();
    }
    if (!may_run || !pacing_.requested()) {
      publish(may_run && synced_ && !last_run_failed_);
      const std::lock_guard lock(mutex_);
      completed_ = ticket;
      settled_.notify_all();
    }
    if (options_.keep && started_) {
      keep_at_ = options_.keep(store_);
    }
    wait(next_turn(may_run));
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
