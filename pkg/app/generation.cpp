#include "app/generation.h"

#include <pthread.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/log.h"
#include "snapshot/file.h"

namespace shunt::app {
namespace {

using config::DetectLocalMode;
using log::kv;

// How long the status socket waits for the sync loop before it answers with what it has.
constexpr Millis kSettleTimeout{10'000};
// A look at the kernel is good for so long: probes come from everybody, and must not keep it busy.
constexpr Millis kLookAgain{1'000};
constexpr Millis kCountAgain{10'000};
// Files do not become more by waiting: a Node is among them or not.
constexpr Millis kManifestPatience{200};
// Sets with more elements take the kernel too long to list.
constexpr std::size_t kMostCounted = 20'000;

nlohmann::json to_json(const backend::conntrack::Counters& counters) {
  return {
      {"passes", counters.passes},
      {"failures", counters.failures},
      {"scanned", counters.scanned},
      {"deleted", counters.deleted},
      {"lastMicroseconds", counters.last_duration.count()}};
}

// "ns/name:port", as a plan names it.
obs::Suppliers::Connections to_metric(const backend::Probe::Connections& one, net::Family family) {
  obs::Suppliers::Connections out;
  const std::size_t slash = std::min(one.service.find('/'), one.service.size());
  const std::size_t colon = std::min(one.service.find(':', slash), one.service.size());
  out.name_space = one.service.substr(0, slash);
  if (slash < one.service.size()) {
    out.service = one.service.substr(slash + 1, colon - slash - 1);
  }
  if (colon < one.service.size()) {
    out.port_name = one.service.substr(colon + 1);
  }
  out.protocol = net::to_string(one.protocol);
  out.ip_family = net::to_string(family);
  out.count = one.count;
  return out;
}

}  // namespace

Result<std::shared_ptr<Generation>> Generation::make(
    config::Options options, const Surroundings& surroundings) {
  if (auto settled = settle_iptables_variant(options); !settled) {
    return tl::unexpected(settled.error());
  }
  std::shared_ptr<Generation> made(new Generation(options));
  auto sources = open_sources(options, made->mailboxes_, surroundings.hooks);
  if (!sources) {
    return tl::unexpected(sources.error());
  }
  made->sources_ = std::move(*sources);
  auto kernel = open_kernel(options, surroundings.on_pass);
  if (!kernel) {
    return tl::unexpected(kernel.error());
  }
  auto probes = open_probes(options);
  if (!probes) {
    return tl::unexpected(probes.error());
  }
  made->probes_ = std::move(*probes);
  made->reconciler_ = std::move(kernel->reconciler);
  if (!options.snapshot.empty() && options.manifests.empty()) {
    made->keeper_ = std::make_unique<snapshot::Keeper>(
        snapshot::KeeperOptions{options.snapshot, options.node_name});
  }
  made->loop_ = std::make_unique<sync::SyncLoop>(
      made->sync_options(surroundings),
      made->mailboxes_,
      std::move(kernel->backends),
      seeded_random());
  return made;
}

sync::SyncOptions Generation::sync_options(const Surroundings& surroundings) {
  sync::SyncOptions out;
  out.flow_cleaner = reconciler_.get();
  out.node_name = options_.node_name;
  out.periods.min_interval = options_.min_sync_period;
  out.periods.retry_set_aside = options_.sync_period;
  out.node_cidrs = options_.detect_local == DetectLocalMode::NodeCidr;
  if (options_.detect_local == DetectLocalMode::ClusterCidr) {
    out.cluster_cidrs = options_.cluster_cidrs;
  }
  out.node_ports = options_.node_port_addresses.or_none_for_primary();
  out.bind_address = options_.bind_address;
  out.external_ips = options_.allow_external_ips;
  out.give_up = surroundings.give_up;
  out.observer = surroundings.observer;
  if (!options_.manifests.empty()) {
    out.node_patience = kManifestPatience;
  }
  if (keeper_) {
    out.keep = [keeper = keeper_.get()](const store::ObjectStore& store) {
      return keeper->offer(store, Clock::now());
    };
  }
  if (relay::Relay* relay = surroundings.relay; relay != nullptr) {
    relay->begin();
    out.frontends_changed = [relay](
                                net::Family family,
                                const desired::DesiredState& wanted,
                                std::span<const desired::FrontendKey> touched) {
      relay->update(family, wanted, touched);
    };
  }
  return out;
}

void Generation::start() {
  reconciler_->start();
  if (keeper_) {
    keeper_->start();
  }
  sync_thread_ = std::thread([this] {
    (void)::pthread_setname_np(::pthread_self(), "sync");  // a name is a nicety
    loop_->run();
  });
  sources_->start();
}

void Generation::stop() {
  sources_->stop();
  loop_->stop();
  if (sync_thread_.joinable()) {
    sync_thread_.join();
  }
  reconciler_->stop();
  if (keeper_) {
    keeper_->stop();
  }
}

void Generation::serve_snapshot() {
  if (!keeper_) {
    return;
  }
  {
    const std::lock_guard lock(probe_mutex_);
    for (auto& [family, probe] : probes_) {
      if (probe->has_any().value_or(true)) {
        return;
      }
    }
  }
  auto contents = snapshot::read_file(options_.snapshot, options_.node_name);
  if (!contents) {
    if (contents.error().code != Errc::NotFound) {
      log::warn("the snapshot is not used", {kv("error", contents.error().what)});
    }
    return;
  }
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now() - contents->written);
  log::warn(
      "the API server is silent, serving what was known last",
      {kv("services", contents->services.size()), kv("age_seconds", age.count())});
  (void)snapshot::deliver(  // what the server said meanwhile stands
      std::move(*contents),
      {mailboxes_.services, mailboxes_.slices, mailboxes_.nodes, mailboxes_.service_cidrs});
}

// The resource versions are read first: what they cover has been delivered, so that after settle()
// it is in the kernel.
std::string Generation::status() {
  nlohmann::json out;
  for (const Sources::Resource& resource : sources_->resources()) {
    out["resourceVersions"][resource.name] = resource.status.resource_version;
  }
  const auto status = loop_->settle(kSettleTimeout);
  out["synced"] = status->synced;
  // In this order: what the sync loop has applied it has handed over.
  out["idle"] = status->idle && loop_->backends_idle() && reconciler_->idle();
  out["commits"] = status->cost.commits;
  out["messages"] = status->cost.messages;
  out["bytes"] = status->cost.bytes;
  const sync::Status::OfFamily all = status->all();
  out["frontends"] = all.frontends;
  out["setAside"] = all.set_aside;
  out["conflicts"] = all.conflicts;
  sync::WithoutLocal without_local;
  for (const auto& [family, of_family] : status->without_local) {
    without_local.internal += of_family.internal;
    without_local.external += of_family.external;
  }
  out["servicesWithoutLocalEndpoints"] = {
      {"internal", without_local.internal}, {"external", without_local.external}};
  for (const auto& [what, count] : status->drift) {
    out["drift"][std::string(net::to_string(what.first))][what.second] = count;
  }
  out["error"] = status->error;
  for (const net::Family family : {net::Family::IPv4, net::Family::IPv6}) {
    out["conntrack"][net::to_string(family)] = to_json(reconciler_->counters(family));
  }
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

health::Readiness Generation::readiness() {
  const auto status = loop_->status();
  health::Readiness out;
  out.synced = status->synced;
  out.in_sync = status->in_sync();
  out.set_aside = status->all().set_aside;
  out.max_contact_age = options_.readyz_max_contact_age;
  for (const Sources::Resource& resource : sources_->resources()) {
    health::Readiness::Contact& contact = out.contacts.emplace_back();
    contact.resource = resource.name;
    if (const auto age = resource.contact_age()) {
      contact.age = std::chrono::duration_cast<Millis>(*age);
    }
  }
  const std::lock_guard lock(probe_mutex_);
  if (Clock::now() - probed_ >= kLookAgain) {
    probed_ = Clock::now();
    hooks_present_ = true;
    canary_.reset();
    for (auto& [family, probe] : probes_) {
      hooks_present_ = probe->program_is_whole().value_or(false) && hooks_present_;
      if (const auto canary = status->canaries.find(family); canary != status->canaries.end()) {
        canary_ = probe->has(canary->second).value_or(false) && canary_.value_or(true);
      }
    }
  }
  out.hooks_present = hooks_present_;
  out.canary = canary_;
  return out;
}

std::vector<obs::Suppliers::Connections> Generation::connections(std::size_t limit) {
  if (limit == 0 || loop_->status()->all().frontends > kMostCounted) {
    return {};
  }
  const std::lock_guard lock(probe_mutex_);
  if (Clock::now() - counted_ < kCountAgain) {
    return connections_;
  }
  counted_ = Clock::now();
  connections_.clear();
  for (auto& [family, probe] : probes_) {
    const auto counts = probe->new_connections();
    if (!counts) {
      continue;  // there is no table yet, or it changes; the next scrape asks again
    }
    for (const auto& one : *counts) {
      connections_.push_back(to_metric(one, family));
    }
  }
  const auto busier = [](const auto& a, const auto& b) { return a.count > b.count; };
  if (connections_.size() > limit) {
    const auto end = connections_.begin() + static_cast<std::ptrdiff_t>(limit);
    std::nth_element(connections_.begin(), end, connections_.end(), busier);
    connections_.erase(end, connections_.end());
  }
  return connections_;
}

}  // namespace shunt::app
