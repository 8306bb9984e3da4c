#include "backend/ipvs/ipvs_backend.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

#include "backend/ipvs/withdrawal_plan.h"
#include "base/log.h"

namespace shunt::backend::ipvs {
namespace {

using log::kv;
using netlink::ipvs::Server;
using What = Command::What;

constexpr int kRereads = 3;

// Where kube-proxy tries a scheduler, too (spec/ipvs.md §1): an address for documentation.
ServerKey probe_key() {
  return {{*net::parse_ip("198.51.100.0"), net::Port{20'000}}, net::Protocol::Tcp};
}

std::string what(const ServerKey& key, const Error& error) {
  return "virtual server " + to_string(key) + ": " + error.what;
}

bool refuses_input(Errc code) { return code == Errc::Invalid || code == Errc::Unsupported; }

void watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (fd >= 0 && ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
    log::warn("changes by others are noticed late", {kv("error", std::strerror(errno))});
  }
}

}  // namespace

IpvsBackend::IpvsBackend(Settings settings, std::unique_ptr<Kernel> kernel, const MakeNft& make_nft)
    : settings_(std::move(settings)),
      kernel_(std::move(kernel)),
      nft_(make_nft([this](const desired::FrontendKey& key, const desired::FrontendPlan& plan) {
        return share(key, plan);
      })),
      events_(::epoll_create1(EPOLL_CLOEXEC)) {
  watch(events_.get(), kernel_->host_fd());
  watch(events_.get(), kernel_->rules_fd());
}

// ---- what is there ----

Result<> IpvsBackend::adopt() {
  servers_.clear();
  draining_.clear();
  everything_ = true;
  if (auto done = kernel_->set_up(); !done) {
    return done;
  }
  rule_gone_ = false;
  auto servers = kernel_->servers();
  if (!servers) {
    return tl::unexpected(servers.error());
  }
  for (const Server& server : *servers) {
    auto reals = kernel_->destinations(server.key);
    if (!reals && reals.error().code != Errc::NotFound) {
      return tl::unexpected(reals.error());
    }
    if (reals) {
      servers_.adopt(server, *reals);
    }
  }
  const auto addresses = ServiceAddresses::look(*kernel_);
  if (!addresses) {
    return tl::unexpected(addresses.error());
  }
  addresses_.adopt(*addresses);
  adopted_ = true;
  audit_due_ = Clock::now() + kAuditPeriod;
  return {};
}

void IpvsBackend::read_host_addresses(const desired::DesiredState& wanted) {
  host_changed_ = false;
  addresses_.set_host_addresses(kernel_->host_addresses());
  node_ports_known_ = wanted.node_port_cidrs.has_value();
  node_port_addresses_.clear();
  if (node_ports_known_) {
    std::ranges::copy_if(
        addresses_.host_addresses(),
        std::back_inserter(node_port_addresses_),
        [&](const net::IpAddress& ip) { return net::any_contains(*wanted.node_port_cidrs, ip); });
  }
}

std::vector<Drift> IpvsBackend::take_drift() {
  host_changed_ = kernel_->take_changes() || host_changed_;
  std::vector<Drift> drift = nft_->take_drift();
  // Not by the minute, as for addresses: without it no packet from outside finds IPVS.
  if (kernel_->take_rule_changes() && adopted_ && !rule_gone_) {
    rule_gone_ = !kernel_->has_rule().value_or(true);
    if (rule_gone_) {
      constexpr auto kRule = netlink::VirtualAddresses::kRulePriority;
      drift.push_back({"routing-rule", std::to_string(kRule), true, 1, ""});
    }
  }
  return drift;
}

Result<> IpvsBackend::restore_rule() {
  auto done = rule_gone_ ? kernel_->set_up() : Result<>();
  rule_gone_ = !done;
  return done;
}

// ---- what is wanted ----

bool IpvsBackend::is_excluded(const net::IpAddress& ip) const {
  return net::any_contains(settings_.exclude_cidrs, ip);
}

// Tried once, at an address that nobody uses, before servers of Services are to have it.
bool IpvsBackend::can_use(const std::string& scheduler) {
  const auto known = schedulers_.find(scheduler);
  if (known != schedulers_.end()) {
    return known->second;
  }
  Commands commands;
  Server probe = named(probe_key());
  probe.scheduler = scheduler;
  commands.push_back({What::AddServer, probe, {}, std::nullopt});
  commands.push_back({What::RemoveServer, probe, {}, std::nullopt});
  std::vector<netlink::ipvs::Refused> refused;
  const auto sent = kernel_->send(commands, refused);
  const bool usable = sent && (refused.empty() || refused.front().index != 0 ||
                               refused.front().error.code == Errc::Exists);
  if (!usable) {
    log::error(
        "a scheduler of IPVS cannot be used here",
        {kv("scheduler", scheduler),
         kv("error", sent ? refused.front().error.what : sent.error().what)});
  }
  return schedulers_[scheduler] = usable;
}

std::string IpvsBackend::scheduler_of(const desired::FrontendPlan& plan) {
  if (plan.ipvs && !plan.ipvs->scheduler.empty() && can_use(plan.ipvs->scheduler)) {
    return plan.ipvs->scheduler;
  }
  return can_use(settings_.scheduler) ? settings_.scheduler : "rr";
}

std::vector<ServerKey> IpvsBackend::servers_of(const desired::FrontendKey& key) const {
  if (!desired::is_node_port(key)) {
    return {{{key.ip, key.port}, key.protocol}};
  }
  std::vector<ServerKey> out;
  for (const net::IpAddress& ip : node_port_addresses_) {
    out.push_back({{ip, key.port}, key.protocol});
  }
  return out;
}

// `node_ports_moved`: they answer elsewhere now.
void IpvsBackend::choose_keys(Run& run, const Delta& delta, bool node_ports_moved) const {
  Keys& keys = run.keys;
  keys = run.everything ? run.wanted.keys() : delta.frontends;
  if (run.everything) {
    const Keys gone = servers_.owners();
    keys.insert(keys.end(), gone.begin(), gone.end());
  } else if (node_ports_moved) {
    std::ranges::copy_if(run.wanted.keys(), std::back_inserter(keys), desired::is_node_port);
  }
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

void IpvsBackend::stage(Run& run, const desired::FrontendKey& key) {
  if (desired::is_node_port(key) && !node_ports_known_) {
    return;  // what an earlier run left stays
  }
  for (const ServerKey& server : servers_.owned_by(key)) {
    draining_.erase(server);  // what still has to leave is found again
  }
  const desired::FrontendPlan* plan = run.wanted.find(key);
  if (plan == nullptr) {
    addresses_.want(key, std::nullopt);
    servers_.stage_removal(key, run.stages);
    return;
  }
  addresses_.want(key, plan->reach);
  servers_.stage(
      key,
      servers_of(key),
      balancing_of(*plan, scheduler_of(*plan)),
      plan->sources != nullptr,
      run.stages);
}

std::optional<desired::FrontendPlan> IpvsBackend::share(
    const desired::FrontendKey& key, const desired::FrontendPlan& plan) const {
  // Without its server, packets would find the host's own port.
  return set_aside_.contains(key) ? std::nullopt : std::optional(nftables_share(plan));
}

// ---- writing ----

// Sends the commands; the picture follows those that were obeyed. A failure ends the run.
Result<> IpvsBackend::carry_out(const Commands& commands, Run& run) {
  if (commands.empty()) {
    return {};
  }
  std::vector<netlink::ipvs::Refused> refused;
  const Clock::time_point begin = Clock::now();
  auto sent = kernel_->send(commands, refused);
  run.report.cost.waited += Clock::now() - begin;
  run.report.cost.commits += 1;
  run.report.cost.messages += commands.size();
  run.report.cost.elements += commands.size();
  if (!sent) {
    return sent;
  }
  Result<> outcome;
  auto next = refused.begin();
  for (std::size_t index = 0; index < commands.size(); ++index) {
    const Command& command = commands[index];
    if (next == refused.end() || next->index != index) {
      servers_.follow(command);
      continue;
    }
    const Error& error = (next++)->error;
    const bool goes = command.what == What::RemoveServer || command.what == What::RemoveReal;
    if (goes && error.code == Errc::NotFound) {
      servers_.follow(command);
    } else if (command.frontend && refuses_input(error.code)) {
      run.refused.try_emplace(
          *command.frontend, Error{error.code, error.sys_errno, what(command.server.key, error)});
    } else if (!command.frontend || !run.refused.contains(*command.frontend)) {
      const bool stale = error.code == Errc::Exists || error.code == Errc::NotFound;
      outcome =
          fail(stale ? Errc::Stale : error.code, what(command.server.key, error), error.sys_errno);
    }
  }
  return outcome;
}

Result<> IpvsBackend::change_addresses(
    const std::vector<ServiceAddresses::Change>& changes, Run& run) {
  if (changes.empty()) {
    return {};
  }
  std::vector<Kernel::AddressRefused> refused;
  run.report.cost.commits += 1;
  run.report.cost.messages += changes.size();
  if (auto done = kernel_->change(changes, refused); !done) {
    return done;
  }
  Result<> outcome;
  auto next = refused.begin();
  for (std::size_t index = 0; index < changes.size(); ++index) {
    if (next != refused.end() && next->index == index) {
      addresses_.retry(changes[index].address);
      outcome = fail(net::to_string(changes[index].address), next->error);
      ++next;
    } else {
      addresses_.follow(changes[index]);
    }
  }
  return outcome;
}

Result<> IpvsBackend::write_table(Run& run, const Delta& delta) {
  for (const desired::FrontendKey& key : run.keys) {
    const auto refused = run.refused.find(key);
    if (refused != run.refused.end()) {
      set_aside_.insert(key);
      run.report.set_aside.push_back({key, refused->second});
    } else if (set_aside_.erase(key) > 0) {
      run.report.accepted.push_back(key);
    }
  }
  Delta share = delta;
  share.frontends = run.keys;
  share.everything = delta.everything || nft_wants_everything_;
  ApplyReport report = nft_->apply(run.wanted, share);
  report.cost += run.report.cost;
  report.set_aside.insert(
      report.set_aside.end(), run.report.set_aside.begin(), run.report.set_aside.end());
  report.accepted.insert(
      report.accepted.end(), run.report.accepted.begin(), run.report.accepted.end());
  run.report = std::move(report);
  nft_wants_everything_ = !run.report.outcome && run.report.retry_everything;
  if (nft_->drift_fd() != nft_events_) {
    nft_events_ = nft_->drift_fd();
    watch(events_.get(), nft_events_);
  }
  return run.report.outcome;
}

// ---- looking again ----

// Whether the kernel still has the servers and addresses that it was left with. What destinations a
// server has is looked at when it is touched.
Result<bool> IpvsBackend::is_as_left() {
  audit_due_ = Clock::now() + kAuditPeriod;
  const auto servers = kernel_->servers();
  if (!servers) {
    return tl::unexpected(servers.error());
  }
  std::size_t known = 0;
  for (const Server& server : *servers) {
    const ServerState* state = servers_.find(server.key);
    if (state != nullptr) {
      ++known;
    }
    if (state == nullptr ? !is_excluded(server.key.address.ip) : state->server != server) {
      return false;
    }
  }
  // Somebody may have taken away the rule, an address or a route; a device that was up and down has
  // its addresses local again.
  if (auto done = kernel_->set_up(); !done) {
    return tl::unexpected(done.error());
  }
  const auto addresses = ServiceAddresses::look(*kernel_);
  if (!addresses) {
    return true;  // nothing is known
  }
  return known == servers_.size() && addresses_.is(*addresses);
}

// ---- a run ----

void IpvsBackend::finish(Run& run) {
  const Clock::time_point now = Clock::now();
  const auto by = [&](Clock::time_point due) {
    const Millis left = std::chrono::ceil<Millis>(std::max(due - now, Clock::duration::zero()));
    run.report.again_in = run.report.again_in ? std::min(*run.report.again_in, left) : left;
  };
  if (!draining_.empty()) {
    by(drain_due_);
  }
  by(audit_due_);
}

// A server first, so that a packet that is delivered finds it and not the host's port; then the
// table, so that nobody who may not connect does; endpoints of restricted frontends behind it; and
// last what goes.
Result<> IpvsBackend::write(Run& run, const Delta& delta) {
  Result<> done = carry_out(run.stages.early, run);
  if (done) {
    done = change_addresses(run.addresses.before, run);
  }
  if (done) {
    done = write_table(run, delta);
  }
  if (done) {
    done = carry_out(run.stages.late, run);
  }
  if (done) {
    add_draining(run);
    done = remove_reals(run);
  }
  if (done) {
    done = remove_servers(run);
  }
  if (done) {
    done = change_addresses(run.addresses.after, run);
  }
  return done;
}

ApplyReport IpvsBackend::apply_once(const desired::DesiredState& wanted, const Delta& delta) {
  Run run{wanted, everything_ || delta.everything, {}, {}, {}, {}, {}};
  const auto node_ports_before = node_port_addresses_;
  const bool known_before = node_ports_known_;
  if (run.everything || delta.ranges || host_changed_) {
    read_host_addresses(wanted);
  }
  const bool known_now = node_ports_known_ && !known_before;
  choose_keys(
      run, delta, node_port_addresses_ != node_ports_before || node_ports_known_ != known_before);
  run.everything = run.everything || known_now;  // what was undecided is looked at again
  for (const desired::FrontendKey& key : run.keys) {
    stage(run, key);
  }
  run.addresses = addresses_.stage(run.everything);

  const Result<> done = write(run, delta);
  everything_ = !done;  // what was to go is found again
  if (done) {
    finish(run);
  } else {
    run.report.outcome = done;
    run.report.retry = run.keys;
    run.report.retry_everything = run.report.retry_everything || run.everything || delta.ranges;
  }
  return std::move(run.report);
}

ApplyReport IpvsBackend::apply(const desired::DesiredState& wanted, const Delta& delta) {
  Cost cost;
  Delta rest = delta;
  for (int attempt = 0;; ++attempt) {
    ApplyReport report;
    if (adopted_ && Clock::now() >= audit_due_) {
      const auto whole = is_as_left();
      if (whole && !*whole) {
        log::warn(
            "virtual servers or addresses are not what they were left as, reading them again",
            {kv("family", net::to_string(settings_.family))});
        adopted_ = false;
      }
    }
    Result<> done = adopted_ ? restore_rule() : adopt();
    if (!done) {
      report.outcome = done;
      report.retry_everything = true;
    } else {
      report = apply_once(wanted, rest);
    }
    cost += report.cost;
    report.cost = cost;
    if (report.outcome || report.outcome.error().code != Errc::Stale || attempt == kRereads) {
      return report;
    }
    log::warn(
        "IPVS is not what it was left as, reading it again",
        {kv("family", net::to_string(settings_.family)), kv("error", report.outcome.error().what)});
    adopted_ = false;
    rest.everything = true;
  }
}

Cost IpvsBackend::prepare(
    const desired::DesiredState& wanted, std::span<const desired::FrontendKey> frontends) {
  (void)frontends;  // what leads to endpoints here is IPVS, which begins at once
  return nft_->prepare(wanted, {});
}

Result<> IpvsBackend::cleanup() {
  if (auto done = adopt(); !done) {
    return done;
  }
  Holdings held;
  held.device = true;  // adopt() made it
  held.bound = addresses_.bound();
  const std::set<net::IpAddress> host = kernel_->host_addresses();
  held.host = {host.begin(), host.end()};
  for (const ServerKey& key : servers_.ownerless()) {
    held.servers.push_back({key, {}});
  }
  Commands commands;
  for (const ServerKey& key : withdraw_now(held, settings_.exclude_cidrs).servers) {
    commands.push_back({What::RemoveServer, named(key), {}, std::nullopt});
  }
  const desired::DesiredState nothing;
  Run run{nothing, true, {}, {}, {}, {}, {}};
  auto done = carry_out(commands, run);
  if (done) {
    done = nft_->cleanup();
  }
  if (done) {
    done = kernel_->tear_down();
  }
  adopted_ = false;
  return done;
}

}  // namespace shunt::backend::ipvs
