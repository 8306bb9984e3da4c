#include "backend/nft/nft_backend.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "backend/nft/affinity.h"
#include "backend/nft/table_check.h"
#include "base/log.h"

namespace shunt::backend::nft {
namespace {

// How many frontends one apply() narrows down as refused. More than that is no odd object, it is
// the kernel.
constexpr std::size_t kMaxRefusals = 64;
constexpr Millis kCollectAgain{30'000};

bool refuses_input(Errc code) { return code == Errc::Invalid || code == Errc::Unsupported; }

// What a node needs first: names and the API server itself.
bool is_vital(const desired::FrontendKey& key, const desired::FrontendPlan* plan) {
  return net::number(key.port) == 53 ||
         (plan != nullptr && plan->service.starts_with("default/kubernetes:"));
}

}  // namespace

NftBackend::NftBackend(
    net::Family family,
    const ProgramSettings& settings,
    std::unique_ptr<Transport> transport,
    std::unique_ptr<Purger> purger,
    OpenFeed open_feed,
    Share share)
    : family_(family),
      program_(make_program(family, settings)),
      transport_(std::move(transport)),
      purger_(std::move(purger)),
      open_feed_(std::move(open_feed)),
      share_(std::move(share)),
      mirror_(family, settings.local_mark != 0) {}

Result<> NftBackend::cleanup() {
  const Result<TableState> state = transport_->read_table(family_);
  if (!state) {
    return tl::unexpected(state.error());
  }
  mirror_.clear();
  table_ = Table::Absent;
  everything_ = true;
  if (!state->exists) {
    return {};
  }
  Transaction transaction;
  transaction.delete_table = true;
  return transport_->commit(program_, transaction).map([](const Cost&) {});
}

// ---- writing ----

void NftBackend::stage(const desired::DesiredState& wanted, const desired::FrontendKey& key) {
  const desired::FrontendPlan* plan = wanted.find(key);
  if (plan == nullptr || !share_) {
    mirror_.stage(key, plan);
    return;
  }
  const std::optional<desired::FrontendPlan> ours = share_(key, *plan);
  mirror_.stage(key, ours ? &*ours : nullptr);
}

// Sends what is staged; the mirror follows when the kernel took it, and forgets it when not.
Result<> NftBackend::send(Transaction transaction, Cost& cost) {
  mirror_.fill(transaction.create, transaction.changes, transaction.remove);
  if (transaction.empty()) {
    mirror_.commit(Clock::now());
    purger_->purge(mirror_.take_purges());  // a restart may have nothing to write but this
    return {};
  }
  const Result<Cost> sent = transport_->commit(program_, transaction);
  if (!sent) {
    mirror_.discard();
    return tl::unexpected(sent.error());
  }
  mirror_.commit(Clock::now());
  mirror_.recycle(std::move(transaction.changes));
  purger_->purge(mirror_.take_purges());
  cost += *sent;
  return {};
}

void NftBackend::stage_settings(const desired::DesiredState& wanted) {
  const std::vector<net::IpRange> pods = net::merged_ranges(wanted.pod_cidrs);
  std::vector<net::IpRange> outsiders;
  if (!pods.empty()) {
    outsiders = {net::all_addresses(family_)};
    for (const net::IpRange& range : pods) {
      outsiders = net::without(outsiders, range);
    }
  }
  mirror_.stage_ranges(SetId::PodCidrs, pods);
  mirror_.stage_ranges(SetId::OutsiderCidrs, std::move(outsiders));
  if (wanted.node_port_cidrs) {
    mirror_.stage_ranges(
        SetId::NodePortIps,
        net::without(net::merged_ranges(*wanted.node_port_cidrs), net::loopback_range(family_)));
  }
}

void NftBackend::stage_ranges(const desired::DesiredState& wanted) {
  if (wanted.service_cidrs) {
    mirror_.stage_ranges(SetId::ServiceCidrs, net::merged_ranges(*wanted.service_cidrs));
  }
  stage_settings(wanted);
}

// The program comes in one transaction. Where another program of ours stood, its data is replaced
// in the same one, so that no packet sees a table without Services. On a bare node it goes first,
// and the data follows in bounded steps.
bool NftBackend::install_program(
    const desired::DesiredState& wanted, const Keys& keys, ApplyReport& report) {
  // A table that somebody took away while we ran comes back the same way: a connection that began
  // between the program and its data would be tracked without translation, and its client's port be
  // of no use for two minutes.
  const bool at_once = table_ == Table::Foreign ||
                       (feed_ && table_ == Table::Absent && keys.size() <= kRestoredAtOnce);
  Transaction transaction;
  transaction.replace_program = &program_;
  transaction.delete_table = table_ != Table::Absent;
  mirror_.clear();
  if (at_once) {
    for (const desired::FrontendKey& key : keys) {
      stage(wanted, key);
    }
    stage_ranges(wanted);
  } else {
    stage_settings(wanted);
  }
  Result<> done = send(transaction, report.cost);
  if (!done && at_once && refuses_input(done.error().code)) {
    // One of the frontends is refused: the program first, then the frontends, which finds the
    // culprit.
    done = send(transaction, report.cost);
  }
  if (!done) {
    report.outcome = done;
    report.retry_everything = true;
    return false;
  }
  table_ = Table::Ours;
  return true;
}

NftBackend::Keys NftBackend::keys_to_write(
    const desired::DesiredState& wanted, const Delta& delta) const {
  Keys keys = everything_ || delta.everything ? wanted.keys() : delta.frontends;
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  if (everything_) {
    std::stable_partition(keys.begin(), keys.end(), [&](const desired::FrontendKey& key) {
      return is_vital(key, wanted.find(key));
    });
  }
  return keys;
}

bool NftBackend::stage_and_commit(
    const desired::DesiredState& wanted,
    std::span<const desired::FrontendKey> keys,
    ApplyReport& report) {
  for (const desired::FrontendKey& key : keys) {
    stage(wanted, key);
  }
  return commit_staged(wanted, keys, report);
}

// Commits these frontends, which are staged. False when apply must stop: `report.outcome` says why.
bool NftBackend::commit_staged(
    const desired::DesiredState& wanted,
    std::span<const desired::FrontendKey> keys,
    ApplyReport& report) {
  const Result<> done = send({}, report.cost);
  if (done) {
    for (const desired::FrontendKey& key : keys) {
      if (set_aside_.erase(key) > 0) {
        report.accepted.push_back(key);
      }
    }
    return true;
  }
  const bool refused =
      refuses_input(done.error().code) || (stale_is_refusal_ && done.error().code == Errc::Stale);
  if (!refused || keys.empty()) {
    report.outcome = done;
    report.retry.insert(report.retry.end(), keys.begin(), keys.end());
    return false;
  }
  write_refused(wanted, keys, done.error(), report);
  return report.outcome.has_value();
}

// The kernel refused a transaction: halves it until the frontends that are to blame stand alone.
void NftBackend::write_refused(
    const desired::DesiredState& wanted,
    std::span<const desired::FrontendKey> keys,
    const Error& error,
    ApplyReport& report) {
  if (keys.size() == 1) {
    set_aside_.insert_or_assign(keys.front(), error);
    report.set_aside.push_back({keys.front(), error});
    return;
  }
  if (report.set_aside.size() >= kMaxRefusals) {
    report.outcome = tl::unexpected(error);
    report.retry.insert(report.retry.end(), keys.begin(), keys.end());
    return;
  }
  const std::size_t half = keys.size() / 2;
  if (stage_and_commit(wanted, keys.first(half), report)) {
    (void)stage_and_commit(wanted, keys.subspan(half), report);  // report.outcome has the answer
  } else {
    report.retry.insert(
        report.retry.end(), keys.begin() + static_cast<std::ptrdiff_t>(half), keys.end());
  }
}

void NftBackend::write(const desired::DesiredState& wanted, const Keys& keys, ApplyReport& report) {
  std::size_t begin = 0;
  while (begin < keys.size()) {
    std::size_t end = begin;
    while (end < keys.size() && !staged_enough()) {
      stage(wanted, keys[end]);
      ++end;
    }
    const std::span<const desired::FrontendKey> part(keys.data() + begin, end - begin);
    if (!commit_staged(wanted, part, report)) {
      report.retry.insert(
          report.retry.end(), keys.begin() + static_cast<std::ptrdiff_t>(end), keys.end());
      return;
    }
    begin = end;
  }
}

// ---- writing ahead ----

Result<> NftBackend::install_bare_program(Cost& cost) {
  Transaction transaction;
  transaction.replace_program = &program_;
  transaction.delete_table = table_ == Table::Empty;
  mirror_.clear();
  mirror_.stage_unfinished();
  if (auto done = send(std::move(transaction), cost); !done) {
    return done;
  }
  table_ = Table::Ours;
  bare_ = true;
  return {};
}

Result<> NftBackend::write_ahead(const desired::DesiredState& wanted, Cost& cost) {
  if (!bare_) {
    if (auto done = install_bare_program(cost); !done) {
      return done;
    }
  }
  for (const desired::FrontendKey& key : ahead_) {
    mirror_.stage_slots(key, wanted.find(key));
  }
  ahead_.clear();
  ahead_elements_ = 0;
  return send({}, cost);
}

Cost NftBackend::prepare(
    const desired::DesiredState& wanted, std::span<const desired::FrontendKey> frontends) {
  Cost cost;
  if (preparing_ && !adopted_) {
    preparing_ = adopt().has_value();
  }
  if (table_ == Table::Foreign || (table_ == Table::Ours && !bare_)) {
    return cost;  // packets go by what is there; half a Service must not replace a whole one
  }
  for (std::size_t i = 0; preparing_ && i < frontends.size(); ++i) {
    const desired::FrontendPlan* plan = wanted.find(frontends[i]);
    if (ahead_.insert(frontends[i]).second && plan != nullptr) {
      ahead_elements_ += plan->endpoints ? plan->endpoints->size() : 0;
      ahead_elements_ += plan->local_endpoints ? plan->local_endpoints->size() : 0;
    }
    if (ahead_elements_ >= kElementsAhead) {
      preparing_ = write_ahead(wanted, cost).has_value();
    }
  }
  if (!preparing_) {
    adopted_ = false;  // apply() looks again, and says what is wrong
  }
  return cost;
}

ApplyReport NftBackend::apply_once(const desired::DesiredState& wanted, const Delta& delta) {
  ApplyReport report;
  const Keys keys = keys_to_write(wanted, delta);
  if (table_ != Table::Ours && !install_program(wanted, keys, report)) {
    return report;
  }
  preparing_ = false;
  ahead_.clear();
  if (everything_) {
    mirror_.stage_strays();
    stage_settings(wanted);
    if (report.outcome = send({}, report.cost); !report.outcome) {
      report.retry_everything = true;
      return report;
    }
  }
  write(wanted, keys, report);
  if (report.outcome && everything_) {
    write(wanted, mirror_.unclaimed(), report);
    if (report.outcome) {
      mirror_.stage_sweep();
      report.outcome = send({}, report.cost);
    }
  }
  // The ranges come last: on a bare node they drop traffic to ClusterIPs that are not there yet.
  if (report.outcome && (everything_ || delta.ranges)) {
    stage_ranges(wanted);
    report.outcome = send({}, report.cost);
  }
  if (!report.outcome && (everything_ || delta.ranges || delta.everything)) {
    report.retry_everything = true;
  }
  if (report.outcome) {
    if (std::exchange(everything_, false)) {
      mirror_.release_memory();
    }
    collect(report);
  }
  return report;
}

// Frees what affinity no longer needs. Nobody waits for it: what the kernel keeps busy is tried
// again with the next change.
void NftBackend::collect(ApplyReport& report) {
  const Clock::time_point now = Clock::now();
  mirror_.stage_collection(now);
  if (const Result<> done = send({}, report.cost); !done) {
    log::debug("affinity chains are still busy", {log::kv("error", done.error().what)});
    report.again_in = kCollectAgain;
  } else if (const auto due = mirror_.collection_due()) {
    report.again_in = std::chrono::ceil<Millis>(std::max(*due - now, Clock::duration::zero()));
  }
}

ApplyReport NftBackend::apply(const desired::DesiredState& wanted, const Delta& delta) {
  ApplyReport total;
  Delta rest = delta;
  for (int attempt = 0;; ++attempt) {
    const bool last = attempt == kRereads;
    Result<> done;
    if (!adopted_ || damage_.everything) {
      done = read_again(/*thorough=*/attempt > 0);
      if (!done) {
        total.outcome = done;
        total.retry_everything = true;
        return total;
      }
    }
    if (damage_.any()) {
      done = mend(rest, total.cost);
      const Errc code = done ? Errc{} : done.error().code;
      if (!done && (code == Errc::Again || code == Errc::Denied)) {
        total.outcome = done;
        total.retry_everything = true;
        return total;
      }
      if (!done && (code != Errc::Stale || last)) {
        replace_table(done.error());
        done = {};
      }
    }
    if (done) {
      // A contradiction that outlives re-reading is a frontend that the kernel will not have.
      stale_is_refusal_ = last;
      ApplyReport report = apply_once(wanted, rest);
      report.cost += total.cost;
      total = std::move(report);
      done = total.outcome;
    }
    if (done) {
      listen(total);
      return total;
    }
    if (done.error().code != Errc::Stale || last) {
      return total;
    }
    log::warn(
        "the table is not what it was left as, reading it again",
        {log::kv("family", net::to_string(family_)), log::kv("error", done.error().what)});
    adopted_ = false;
    rest.everything = true;
  }
}

}  // namespace shunt::backend::nft
