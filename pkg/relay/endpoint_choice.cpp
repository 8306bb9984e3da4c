#include "relay/endpoint_choice.h"

#include <algorithm>
#include <utility>

namespace shunt::relay {

void EndpointChoice::set(
    desired::EndpointListPtr endpoints, std::optional<std::chrono::seconds> affinity) {
  endpoints_ = std::move(endpoints);
  affinity_ = affinity;
  any_ = endpoints_ && std::ranges::any_of(*endpoints_, usable);
  if (!affinity_ || (remembered_ && !contains(*remembered_))) {
    remembered_.reset();
  }
}

bool EndpointChoice::usable(const net::SocketAddress& endpoint) {
  return !net::is_loopback(endpoint.ip) && endpoint.ip != net::IpAddress{endpoint.ip.family, {}};
}

bool EndpointChoice::contains(const net::SocketAddress& endpoint) const {
  return endpoints_ && usable(endpoint) && std::ranges::binary_search(*endpoints_, endpoint);
}

std::optional<net::SocketAddress> EndpointChoice::next(Clock::time_point now, double random) {
  if (!any_) {
    return std::nullopt;
  }
  if (remembered_ && now - asked_ < *affinity_) {
    asked_ = now;
    return remembered_;
  }
  const std::size_t count = endpoints_->size();
  std::size_t index = std::min(static_cast<std::size_t>(random * double(count)), count - 1);
  while (!usable((*endpoints_)[index])) {
    index = (index + 1) % count;
  }
  const net::SocketAddress endpoint = (*endpoints_)[index];
  if (affinity_) {
    remembered_ = endpoint;
    asked_ = now;
  }
  return endpoint;
}

}  // namespace shunt::relay
