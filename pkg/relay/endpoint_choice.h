// Which endpoint the next connection to a NodePort gets. Pure, given time and randomness.
#pragma once

#include <chrono>
#include <optional>

#include "base/backoff.h"
#include "desired/frontend.h"

namespace shunt::relay {

class EndpointChoice {
 public:
  void set(desired::EndpointListPtr endpoints, std::optional<std::chrono::seconds> affinity);

  // An endpoint on loopback is none: a relay that connected to itself would do so for ever.
  static bool usable(const net::SocketAddress& endpoint);
  bool any() const { return any_; }
  bool contains(const net::SocketAddress& endpoint) const;

  // `random` is in [0, 1). All clients on this machine are one client: with affinity they stay with
  // an endpoint until nobody has asked for the timeout, or it is no longer usable.
  std::optional<net::SocketAddress> next(Clock::time_point now, double random);

 private:
  desired::EndpointListPtr endpoints_;
  std::optional<std::chrono::seconds> affinity_;
  std::optional<net::SocketAddress> remembered_;
  Clock::time_point asked_{};
  bool any_ = false;
};

}  // namespace shunt::relay
