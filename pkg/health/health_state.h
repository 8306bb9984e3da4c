// ProxyHealth for several threads: the sync thread tells, servers answer.
#pragma once

#include <mutex>

#include "health/proxy_health.h"
#include "http/message.h"

namespace shunt::health {

class HealthState {
 public:
  explicit HealthState(Millis timeout) : health_(timeout) {}

  void set_timeout(Millis timeout);
  void queued(net::Family family, const Instant& now = Instant::now());
  void updated(net::Family family, const Instant& now = Instant::now());
  void set_node(const kube::Node* node);

  bool healthy(Clock::time_point now = Clock::now()) const;
  http::Response healthz(const Instant& now = Instant::now());
  http::Response livez(const Instant& now = Instant::now());
  ProxyHealth::Counters healthz_answers() const;
  ProxyHealth::Counters livez_answers() const;

 private:
  mutable std::mutex mutex_;
  ProxyHealth health_;
};

}  // namespace shunt::health
