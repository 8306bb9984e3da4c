#include "health/health_state.h"

#include <utility>

namespace shunt::health {
namespace {

http::Response response(ProxyHealth::Answer answer) {
  return {
      answer.status,
      "application/json",
      std::move(answer.body),
      {{"X-Content-Type-Options", "nosniff"}}};
}

}  // namespace

void HealthState::set_timeout(Millis timeout) {
  const std::lock_guard lock(mutex_);
  health_.set_timeout(timeout);
}

void HealthState::queued(net::Family family, const Instant& now) {
  const std::lock_guard lock(mutex_);
  health_.queued(family, now);
}

void HealthState::updated(net::Family family, const Instant& now) {
  const std::lock_guard lock(mutex_);
  health_.updated(family, now);
}

void HealthState::set_node(const kube::Node* node) {
  const std::lock_guard lock(mutex_);
  health_.set_node(node);
}

bool HealthState::healthy(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  return health_.healthy(now);
}

http::Response HealthState::healthz(const Instant& now) {
  const std::lock_guard lock(mutex_);
  return response(health_.healthz(now));
}

http::Response HealthState::livez(const Instant& now) {
  const std::lock_guard lock(mutex_);
  return response(health_.livez(now));
}

ProxyHealth::Counters HealthState::healthz_answers() const {
  const std::lock_guard lock(mutex_);
  return health_.healthz_answers();
}

ProxyHealth::Counters HealthState::livez_answers() const {
  const std::lock_guard lock(mutex_);
  return health_.livez_answers();
}

}  // namespace shunt::health
