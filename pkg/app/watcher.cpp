#include "app/watcher.h"

#include <utility>

#include "health/listen_addresses.h"
#include "netlink/interface_addresses.h"
#include "node/node_port_ranges.h"

namespace shunt::app {

Watcher::Watcher(
    std::vector<net::Family> families,
    obs::Metrics& metrics,
    health::HealthState& health,
    health::ServiceHealth& services)
    : families_(std::move(families)), metrics_(metrics), health_(health), services_(services) {}

void Watcher::begin(
    std::function<void(const kube::Notice&)> tell, std::function<void()> first_sync_done) {
  tell_ = std::move(tell);
  first_sync_done_ = std::move(first_sync_done);
  began_ = Clock::now();
  for (const net::Family family : families_) {
    of(family).planned.clear();
    of(family).synced = false;
    health_.updated(family);  // spec/config.md §10: the start of the loop counts as an update
    metrics_.queued(family);
  }
}

void Watcher::place(net::Family family) {
  const OfFamily& here = of(family);
  if (here.ranges.empty()) {
    return;  // not planned yet
  }
  std::optional<std::vector<net::IpAddress>> interfaces;
  if (!node::match_all(here.ranges)) {  // whoever answers on all addresses need not know them
    if (auto found = netlink::interface_addresses()) {
      interfaces = std::move(*found);
    }
  }
  services_.set_addresses(family, health::listen_addresses(family, here.ranges, interfaces));
}

void Watcher::turned() {
  if (!addresses_changed_.exchange(false)) {
    return;
  }
  for (const net::Family family : families_) {
    place(family);
    if (of(family).synced) {
      services_.commit(family);
    }
  }
}

void Watcher::queued() {
  for (const net::Family family : families_) {
    health_.queued(family);
    metrics_.queued(family);
  }
}

void Watcher::received(std::size_t services, std::size_t slices) {
  if (services != 0) {
    metrics_.service_changes(services);
  }
  if (slices != 0) {
    metrics_.endpoint_changes(slices);
  }
}

void Watcher::node_seen(const kube::Node* node) { health_.set_node(node); }

void Watcher::health_check_planned(
    net::Family family,
    const kube::ObjectKey& service,
    const std::optional<desired::HealthCheck>& check,
    const std::string& uid) {
  OfFamily& here = of(family);
  if (check) {
    here.checked.insert(service);
    here.planned.insert(service);
  } else if (here.checked.erase(service) == 0) {
    return;  // it never had one
  }
  services_.update(family, service, check, uid);
}

void Watcher::node_ports_planned(net::Family family, const std::vector<net::Cidr>& ranges) {
  of(family).ranges = ranges;
  place(family);
}

void Watcher::ran(net::Family family, const sync::RunReport& report) {
  metrics_.changes_taken();
  metrics_.synced(
      family, {report.duration, report.everything, report.succeeded, report.rules.has_value()});
  if (report.rules) {
    metrics_.iptables_rules(
        family,
        {report.rules->filter,
         report.rules->nat,
         report.rules->filter_written,
         report.rules->nat_written});
  }
  if (report.cost.commits != 0) {
    metrics_.committed(
        family,
        {report.cost.waited, report.cost.messages, report.cost.bytes, report.cost.elements});
  }
  if (!report.succeeded) {
    return;
  }
  health_.updated(family);
  metrics_.without_local(family, report.without_local.internal, report.without_local.external);
  OfFamily& here = of(family);
  if (!std::exchange(here.synced, true)) {
    for (auto at = here.checked.begin(); at != here.checked.end();) {
      if (here.planned.contains(*at)) {
        ++at;
      } else {  // it went while nobody looked
        services_.update(family, *at, std::nullopt);
        at = here.checked.erase(at);
      }
    }
  }
  services_.commit(family);
}

void Watcher::first_sync_done() {
  metrics_.first_sync(Clock::now() - began_);
  if (first_sync_done_) {
    first_sync_done_();
  }
}

void Watcher::programmed(net::Family family, std::chrono::nanoseconds latency) {
  metrics_.programmed(family, latency);
}

void Watcher::drifted(net::Family family, const backend::Drift& drift) {
  metrics_.drift_repaired(family, drift.kind, drift.count);
}

void Watcher::noticed(const kube::Notice& notice) {
  if (tell_) {
    tell_(notice);
  }
}

}  // namespace shunt::app
