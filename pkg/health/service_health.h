// The health ports of Services (healthCheckNodePort): each tells balancers whether this node has
// endpoints of its Service (spec/conntrack-and-metrics.md §3).
//
// Staged and committed, so that nothing is said that the data path does not do yet: the sync thread
// tells what it planned, and commit() after a sync that succeeded makes it true. Ports are closed
// before others are opened, since one Service may take over the port of another. A Service that
// cannot have all of its addresses gets none, is told of in a notice, and tried again at the next
// commit; but one that listens already keeps what it has when the node gets another address that
// does not work out.
//
// All calls come from the sync thread and cost what changed. Peers are answered on the server's.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "desired/planner.h"
#include "http/server.h"
#include "kube/notice.h"
#include "kube/object_key.h"
#include "net/cidr.h"

namespace shunt::health {

// Where listeners come from: http::Server, or a test's own.
class Listeners {
 public:
  virtual ~Listeners() = default;
  virtual Result<std::uint64_t> listen(const http::ListenAddress& address, http::Service) = 0;
  virtual void close(std::uint64_t id) = 0;
};
std::unique_ptr<Listeners> listeners_of(http::Server& server);  // the server outlives it

// What a balancer is told. Pure.
http::Response service_answer(
    const kube::ObjectKey& service, std::size_t local_endpoints, bool proxy_healthy);

class ServiceHealth {
 public:
  struct Settings {
    std::string node_name;
    // Whether the daemon keeps up (HealthState::healthy). Called on the server's thread, also after
    // this object is gone: what it uses outlives the server. Empty: always.
    std::function<bool()> proxy_healthy = {};
    kube::NoticeSink notice = {};  // called on the sync thread
  };

  ServiceHealth(Settings settings, std::unique_ptr<Listeners> listeners);
  ~ServiceHealth();  // closes every port
  ServiceHealth(const ServiceHealth&) = delete;
  ServiceHealth& operator=(const ServiceHealth&) = delete;

  // Where to listen, from the next commit on; cheap when nothing changed. Until it is called, on
  // every address.
  void set_addresses(net::Family family, std::vector<net::IpAddress> addresses);

  // What the Service wants now; nothing: no health port. Counts as of the next commit.
  void update(
      net::Family family,
      const kube::ObjectKey& service,
      const std::optional<desired::HealthCheck>& wanted,
      const std::string& uid = {});

  // Of one family, after its sync succeeded.
  void commit(net::Family family);

  // Some port could not be opened: commit() is worth calling again though nothing changed.
  bool waiting() const;
  std::size_t size() const;  // Services that listen, of both families

 private:
  // Shared with the handlers, which may still run when the port is closed.
  struct Told {
    kube::ObjectKey service;
    std::function<bool()> proxy_healthy;
    std::atomic<std::size_t> local_endpoints = 0;
  };
  struct Wanted {
    desired::HealthCheck check;
    std::string uid;
  };
  struct Open {
    net::Port port{};
    std::map<net::IpAddress, std::uint64_t> listeners;
    std::shared_ptr<Told> told;
  };
  struct OfFamily {
    std::vector<net::IpAddress> addresses;
    bool addresses_changed = false;
    std::map<kube::ObjectKey, Wanted> wanted;
    std::set<kube::ObjectKey> changed;              // since the last commit
    std::map<kube::ObjectKey, std::string> failed;  // what was said of those to try again
    std::map<kube::ObjectKey, Open> open;
  };

  OfFamily& of(net::Family family) { return families_[static_cast<std::size_t>(family)]; }
  void close_outdated(OfFamily& here, const kube::ObjectKey& service);
  void open(OfFamily& here, const kube::ObjectKey& service, const Wanted& wanted);
  Result<> listen_everywhere(OfFamily& here, Open& open);
  void close(const Open& open);
  void report(
      OfFamily& here, const kube::ObjectKey& service, const Wanted& wanted, const Error& error);

  Settings settings_;
  std::unique_ptr<Listeners> listeners_;
  std::array<OfFamily, 2> families_;
};

}  // namespace shunt::health
