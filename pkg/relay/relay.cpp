#include "relay/relay.h"

#include <pthread.h>

#include <utility>

namespace shunt::relay {

Result<std::unique_ptr<Relay>> Relay::start(const Limits& limits, Random random) {
  std::unique_ptr<Relay> relay(new Relay);
  auto engine = Engine::make(limits, std::move(random), relay->wake_);
  if (!engine) {
    return fail("relay", engine.error());
  }
  relay->engine_ = std::move(*engine);
  relay->thread_ = std::thread([raw = relay.get()] { raw->run(); });
  return relay;
}

Relay::~Relay() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.ring();
    thread_.join();
  }
}

void Relay::begin() {
  const std::lock_guard lock(mutex_);
  to_begin_ = {net::Family::IPv4, net::Family::IPv6};
}

void Relay::update(
    net::Family family,
    const desired::DesiredState& wanted,
    std::span<const desired::FrontendKey> touched) {
  bool any = false;
  const std::lock_guard lock(mutex_);
  const auto look_at = [&](const desired::FrontendKey& key) {
    std::optional<NodePort> node_port;
    if (const desired::FrontendPlan* plan = wanted.find(key)) {
      node_port = NodePort{plan->service, plan->endpoints, std::nullopt};
      if (plan->affinity) {
        node_port->affinity = plan->affinity->timeout;
      }
      told_.insert(key);
    } else {
      told_.erase(key);
    }
    changes_.insert_or_assign(key, std::move(node_port));
    any = true;
  };
  if (to_begin_.erase(family) != 0) {
    for (const desired::FrontendKey& key : std::set(told_)) {
      if (key.ip.family == family) {
        look_at(key);
      }
    }
  }
  for (const desired::FrontendKey& key : touched) {
    if (desired::is_node_port(key) && key.protocol != net::Protocol::Sctp) {
      look_at(key);
    }
  }
  if (any) {
    wake_.ring();
  }
}

// False when it is time to stop.
bool Relay::take_changes() {
  decltype(changes_) changes;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      return false;
    }
    changes.swap(changes_);
  }
  for (auto& [key, node_port] : changes) {
    engine_->set(key, std::move(node_port));
  }
  return true;
}

void Relay::run() {
  (void)::pthread_setname_np(::pthread_self(), "relay");  // a name is a nicety
  while (take_changes()) {
    engine_->step();
  }
}

}  // namespace shunt::relay
