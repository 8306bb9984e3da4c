#include "backend/iptables/iptables_backend.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "backend/iptables/names.h"
#include "backend/leftovers/iptables_plan.h"
#include "base/log.h"

namespace shunt::backend::iptables {
namespace {

using desired::DesiredState;
using desired::FrontendKey;
using log::kv;

UniqueFd periodic_timer(Millis period) {
  UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(period);
  const timespec every{whole.count(), std::chrono::nanoseconds(period - whole).count()};
  const itimerspec spec{every, every};
  (void)::timerfd_settime(timer.get(), 0, &spec, nullptr);  // without one, others' changes stay
  return timer;
}

}  // namespace

IptablesBackend::IptablesBackend(Settings settings, std::unique_ptr<Tables> tables)
    : settings_(std::move(settings)),
      tables_(std::move(tables)),
      timer_(periodic_timer(kLookPeriod)),
      style_{settings_.frame.family, settings_.masquerade_all, settings_.detector, std::nullopt} {}

Result<Listing> IptablesBackend::read() {
  // Before the tables: what changes while they are read is another number afterwards.
  generation_ = tables_->generation();
  fingerprint_.reset();
  audit_due_ = Clock::now() + settings_.audit_period;
  return read_tables(*tables_);
}

// True when the rules of every port are others now.
bool IptablesBackend::follow_ranges(const DesiredState& wanted) {
  if (wanted.node_port_cidrs) {
    node_ports_ = node_port_rules(settings_.frame, *wanted.node_port_cidrs);
  }
  // One range a family: so the configuration has it, and so kube-proxy.
  const Style before = style_;
  style_.pods = wanted.pod_cidrs.empty() ? std::nullopt : std::optional(wanted.pod_cidrs.front());
  return style_ != before;
}

// The ports that these frontends belong to, or did, with the frontends they have now.
std::set<PortId> IptablesBackend::touched_ports(
    const DesiredState& wanted, const std::vector<FrontendKey>& keys) {
  std::set<PortId> out;
  for (const FrontendKey& key : keys) {
    if (const auto owner = owners_.find(key); owner != owners_.end()) {
      out.insert(owner->second);
      frontends_[owner->second].erase(key);
      owners_.erase(owner);
    }
    if (const desired::FrontendPlan* plan = wanted.find(key)) {
      PortId id{plan->service, key.protocol};
      frontends_[id].insert(key);
      out.insert(id);
      owners_.emplace(key, std::move(id));
    }
  }
  return out;
}

PortRules IptablesBackend::rules_of(const DesiredState& wanted, const PortId& id) const {
  std::vector<std::pair<FrontendKey, const desired::FrontendPlan*>> plans;
  if (const auto found = frontends_.find(id); found != frontends_.end()) {
    for (const FrontendKey& key : found->second) {
      if (const desired::FrontendPlan* plan = wanted.find(key)) {
        plans.emplace_back(key, plan);
      }
    }
  }
  return rules_of_port(plans, style_);
}

Frame IptablesBackend::wanted_frame() const {
  Frame out;
  out.fixed = fixed_chains(settings_.frame);
  out.shared = {shared_chains().begin(), shared_chains().end()};
  out.jumps = wanted_jumps(settings_.frame);
  out.guard = settings_.frame.localhost_node_ports;
  out.guard_chain = out.guard || kernel_.frame().guard_chain;
  out.node_ports = node_ports_.value_or(kernel_.frame().node_ports);
  return out;
}

Result<> IptablesBackend::take_in(const DesiredState& wanted) {
  if (!seen_) {
    auto listing = read();
    if (!listing) {
      return tl::unexpected(listing.error());
    }
    seen_ = std::move(*listing);
  }
  KernelRules::Wanted ports;
  for (const auto& [id, keys] : frontends_) {
    ports.emplace(id, rules_of(wanted, id));
  }
  kernel_.take_in(std::move(*seen_), ports, node_ports_ ? &*node_ports_ : nullptr);
  seen_.reset();
  known_ = true;
  return {};
}

Result<> IptablesBackend::commit(const Document& document, ApplyReport& report) {
  if (document.empty()) {
    return {};
  }
  std::string text = document.text();
  const Clock::time_point begin = Clock::now();
  const auto before = tables_->generation();
  auto done = tables_->restore(text);
  if (!done && done.error().code != Errc::Again && !document.chains_that_go().empty()) {
    const Error why = done.error();
    text = document.text(true);
    done = tables_->restore(text);
    if (done) {
      kept_ = document.chains_that_go();
      log::warn(
          "chains of Services that went stay, empty: it may be that others' rules lead there",
          {kv("family", net::to_string(settings_.frame.family)), kv("error", why.what)});
    }
  }
  report.cost.waited += Clock::now() - begin;
  fingerprint_.reset();
  if (done) {
    ++report.cost.commits;
    report.cost.messages += document.changes();
    report.cost.elements += document.changes();
    report.cost.bytes += text.size();
    report.rules->filter_written += document.rules_written(Table::Filter);
    report.rules->nat_written += document.rules_written(Table::Nat);
    // Unless others wrote meanwhile, who are looked after as soon as the next look is due.
    const auto after = tables_->generation();
    const bool alone =
        before == generation_ &&
        (!tables_->counts_commits() || (before && after && *after - *before == document.commits()));
    generation_ = alone ? after : std::nullopt;
  }
  return done;
}

std::vector<PortId> IptablesBackend::ids_of(const Run& run) {
  std::vector<PortId> out;
  for (const auto& [id, rules] : run.ports) {
    out.push_back(id);
  }
  return out;
}

// Everything in one document.
Result<> IptablesBackend::write(Run& run) {
  Document document;
  kernel_.differ(run.frame, document);
  for (const auto& [id, rules] : run.ports) {
    kernel_.differ(id, rules, document);
  }
  kernel_.remove_strays(document);
  if (auto done = commit(document, run.report); !done) {
    return done;
  }
  kernel_.applied(run.frame);
  kernel_.removed_strays();
  for (const PortId& id : ids_of(run)) {
    settled(run, id);
  }
  return {};
}

// Something in it is refused: it is found by halves, and the rest goes through.
Result<> IptablesBackend::write_apart(Run& run) {
  Document frame;
  kernel_.differ(run.frame, frame);
  if (auto done = commit(frame, run.report); !done) {
    return done;
  }
  kernel_.applied(run.frame);
  write_ports(run, ids_of(run));
  Document strays;
  kernel_.remove_strays(strays);
  if (auto done = commit(strays, run.report); done) {
    kernel_.removed_strays();
  } else if (run.report.outcome) {
    run.report.outcome = done;
  }
  return run.report.outcome;
}

void IptablesBackend::write_ports(Run& run, std::span<const PortId> ids) {
  if (ids.empty() || !run.report.outcome) {
    return;
  }
  Document document;
  for (const PortId& id : ids) {
    kernel_.differ(id, run.ports.at(id), document);
  }
  if (const auto done = commit(document, run.report); done) {
    for (const PortId& id : ids) {
      settled(run, id);
    }
  } else if (done.error().code == Errc::Again) {
    run.report.outcome = done;
  } else if (ids.size() == 1) {
    set_aside(run, ids.front(), done.error());
  } else {
    write_ports(run, ids.first(ids.size() / 2));
    write_ports(run, ids.subspan(ids.size() / 2));
  }
}

void IptablesBackend::settled(Run& run, const PortId& id) {
  kernel_.applied(id, std::move(run.ports.at(id)));
  const auto found = frontends_.find(id);
  if (set_aside_.erase(id) > 0 && found != frontends_.end()) {
    run.report.accepted.insert(
        run.report.accepted.end(), found->second.begin(), found->second.end());
  }
  if (found != frontends_.end() && found->second.empty()) {
    frontends_.erase(found);
  }
}

void IptablesBackend::set_aside(Run& run, const PortId& id, const Error& why) {
  set_aside_.insert(id);
  for (const FrontendKey& key : frontends_[id]) {
    run.report.set_aside.push_back({key, why});
  }
}

ApplyReport IptablesBackend::failed(Run& run, const Delta& delta, const Error& why) {
  run.report.outcome = tl::unexpected(why);
  known_ = false;  // a document of several commits may be half done
  run.report.retry_everything = delta.everything;
  run.report.retry = delta.frontends;
  return std::move(run.report);
}

// Once, after the first writing: whether what is read is what was written.
void IptablesBackend::learn_words(const ApplyReport& report) {
  if (words_differ_ || report.cost.commits == 0) {
    return;
  }
  const auto listing = read();
  if (!listing) {
    return;  // the next time
  }
  words_differ_ = !kernel_.compare(*listing, false).empty();
  if (*words_differ_) {
    log::warn(
        "this iptables prints rules in other words than it was given: what others change is found "
        "by the number of rules only",
        {kv("family", net::to_string(settings_.frame.family))});
  }
}

ApplyReport IptablesBackend::apply(const DesiredState& wanted, const Delta& delta) {
  Run run{wanted, {}, {}, {}};
  run.report.rules.emplace();
  const bool all_change = follow_ranges(wanted);
  const bool everything = delta.everything || all_change || !known_;
  std::vector<FrontendKey> keys = delta.frontends;
  if (everything) {
    keys = wanted.keys();
    std::ranges::transform(
        owners_, std::back_inserter(keys), [](const auto& owner) { return owner.first; });
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  }
  std::set<PortId> touched = touched_ports(wanted, keys);
  const auto write_all = [&]() -> Result<> {
    if (!known_) {
      if (auto done = take_in(wanted); !done) {
        return done;
      }
      for (const auto& [id, frontends] : frontends_) {
        touched.insert(id);
      }
    }
    run.ports.clear();
    for (const PortId& id : touched) {
      run.ports.emplace(id, rules_of(wanted, id));
    }
    run.frame = wanted_frame();
    return write(run);
  };
  const bool was_known = known_;
  auto done = write_all();
  if (!done && done.error().code != Errc::Again && was_known) {
    known_ = false;  // it may be that our picture was wrong
    done = write_all();
  }
  if (!done && done.error().code != Errc::Again && known_) {
    known_ = false;
    if (done = take_in(wanted); done) {
      done = write_apart(run);
    }
  }
  if (!done) {
    return failed(run, delta, done.error());
  }
  for (const ChainName& chain : std::exchange(kept_, {})) {
    kernel_.keep(chain);
  }
  learn_words(run.report);
  run.report.rules->filter = kernel_.rules(Table::Filter);
  run.report.rules->nat = kernel_.rules(Table::Nat);
  return std::move(run.report);
}

// The number is the one that we know, or what others did is seen to be no matter of ours.
bool IptablesBackend::only_others_changed() {
  const auto generation = tables_->generation();
  if (generation == generation_) {
    if (!fingerprint_) {  // ours as it is when nobody has touched it
      fingerprint_ = tables_->fingerprint();
      if (tables_->generation() != generation_) {
        fingerprint_.reset();
      }
    }
    return true;
  }
  const auto seen = fingerprint_ ? tables_->fingerprint() : std::nullopt;
  if (!seen || seen != fingerprint_) {
    return false;
  }
  generation_ = generation;
  return true;
}

// Where others are busy with rules of their own, we are with ours for a tenth of the time at most.
void IptablesBackend::rest_after(Clock::time_point begin) {
  constexpr std::chrono::milliseconds kNothing{10};  // which that is, with looks so far apart
  const Clock::duration took = Clock::now() - begin;
  if (took > kNothing) {
    look_due_ = Clock::now() + 9 * took;
  }
}

std::vector<Drift> IptablesBackend::take_drift() {
  std::uint64_t ticks = 0;
  if (::read(timer_.get(), &ticks, sizeof ticks) < 0) {
    ticks = 0;  // nothing to read: asked out of turn
  }
  const Clock::time_point now = Clock::now();
  if (!known_ || now < look_due_) {
    return {};
  }
  // A fingerprint misses nothing; a number alone may.
  if ((now < audit_due_ || fingerprint_) && only_others_changed()) {
    rest_after(now);
    return {};
  }
  auto listing = read();
  rest_after(now);
  if (!listing) {
    log::debug("the tables cannot be read", {kv("error", listing.error().what)});
    generation_.reset();
    return {};
  }
  std::vector<Drift> drift = kernel_.compare(*listing, words_differ_.value_or(false));
  if (!drift.empty()) {
    known_ = false;
    seen_ = std::move(*listing);
  }
  return drift;
}

Result<> IptablesBackend::cleanup() {
  known_ = false;
  for (const Table table : {Table::Filter, Table::Nat}) {
    const auto text = tables_->save(table);
    if (!text) {
      return tl::unexpected(text.error());
    }
    const leftovers::RemovalPlan plan = leftovers::plan_removal(*text);
    if (!plan.issues.empty()) {
      return fail(Errc::Again, plan.issues.front());
    }
    for (const leftovers::TablePlan& part : plan.tables) {
      if (!part.restore.empty()) {
        if (auto done = tables_->restore(part.restore); !done) {
          return done;
        }
      }
    }
  }
  return {};
}

}  // namespace shunt::backend::iptables
