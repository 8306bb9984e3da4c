// Hears what the sync loop says and passes it on: to the metrics, to the health pages, to the
// health ports of Services, and to whoever makes Events.
//
// It outlives generations of the daemon: a health port stays open while the inner parts are built
// anew, and a Service that went meanwhile is found out when the next one has synced.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "health/health_state.h"
#include "health/service_health.h"
#include "obs/metrics.h"
#include "sync/observer.h"

namespace shunt::app {

class Watcher : public sync::Observer {
 public:
  // All of them outlive it.
  Watcher(
      std::vector<net::Family> families,
      obs::Metrics& metrics,
      health::HealthState& health,
      health::ServiceHealth& services);

  // A generation begins; the sync thread does not run. `first_sync_done` is called on its thread.
  void begin(std::function<void(const kube::Notice&)> tell, std::function<void()> first_sync_done);
  // Any thread. The host's addresses are looked at when the loop comes round next.
  void addresses_changed() { addresses_changed_ = true; }

  void turned() override;
  void queued() override;
  void received(std::size_t services, std::size_t slices) override;
  void node_seen(const kube::Node* node) override;
  void health_check_planned(
      net::Family family,
      const kube::ObjectKey& service,
      const std::optional<desired::HealthCheck>& check,
      const std::string& uid) override;
  void node_ports_planned(net::Family family, const std::vector<net::Cidr>& ranges) override;
  void ran(net::Family family, const sync::RunReport& report) override;
  void first_sync_done() override;
  void programmed(net::Family family, std::chrono::nanoseconds latency) override;
  void drifted(net::Family family, const backend::Drift& drift) override;
  void noticed(const kube::Notice& notice) override;

 private:
  struct OfFamily {
    std::vector<net::Cidr> ranges;
    std::set<kube::ObjectKey> checked;  // Services with a health port
    std::set<kube::ObjectKey> planned;  // of those, planned by this generation
    bool synced = false;                // this generation
  };
  OfFamily& of(net::Family family) { return of_families_[static_cast<std::size_t>(family)]; }
  void place(net::Family family);

  std::vector<net::Family> families_;
  obs::Metrics& metrics_;
  health::HealthState& health_;
  health::ServiceHealth& services_;
  std::function<void(const kube::Notice&)> tell_;
  std::function<void()> first_sync_done_;
  std::array<OfFamily, 2> of_families_;
  std::atomic<bool> addresses_changed_ = false;
  Clock::time_point began_ = Clock::now();
};

}  // namespace shunt::app
