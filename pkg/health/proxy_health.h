// Whether the daemon keeps up, as /healthz and /livez say it (spec/config.md §10).
//
// Age does not matter, only work that waits: a family is unhealthy when a sync was asked for and
// has not succeeded within the timeout. /healthz also says no when the Node is about to go, so that
// balancers send new connections elsewhere; /livez does not, or the daemon would be restarted for
// it.
//
// A value given a clock. Not for several threads at once: whoever shares it locks.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/backoff.h"
#include "kube/node.h"
#include "net/ip_address.h"

namespace shunt::health {

// Durations are measured on the steady clock: a clock that is set must not look like waiting work.
struct Instant {
  Clock::time_point steady;
  std::chrono::system_clock::time_point wall;
  static Instant now() { return {Clock::now(), std::chrono::system_clock::now()}; }
};

// Known, not being deleted, and not about to be taken away by the cluster's scaler.
bool is_eligible(const kube::Node* node);

class ProxyHealth {
 public:
  struct Answer {
    int status = 0;
    std::string body;  // JSON
  };
  using Counters = std::map<int, std::uint64_t>;  // answers by status

  // kube-proxy's timeout is twice the sync period.
  explicit ProxyHealth(Millis timeout) : timeout_(timeout) {}

  void set_timeout(Millis timeout) { timeout_ = timeout; }

  void queued(net::Family family, const Instant& now);   // work is waiting; only the first counts
  void updated(net::Family family, const Instant& now);  // a sync succeeded
  void set_node(const kube::Node* node) { node_eligible_ = is_eligible(node); }

  bool healthy(Clock::time_point now) const;  // every family that was ever updated keeps up
  Answer healthz(const Instant& now);
  Answer livez(const Instant& now);
  const Counters& healthz_answers() const { return healthz_answers_; }
  const Counters& livez_answers() const { return livez_answers_; }

 private:
  struct OfFamily {
    std::optional<std::chrono::system_clock::time_point> updated;
    std::optional<Clock::time_point> waiting_since;
  };

  bool keeps_up(const OfFamily& family, Clock::time_point now) const;
  std::string body(const Instant& now, bool healthy, bool ok, bool with_node) const;

  Millis timeout_;
  std::map<net::Family, OfFamily> families_;
  bool node_eligible_ = false;
  Counters healthz_answers_;
  Counters livez_answers_;
};

}  // namespace shunt::health
