// Where do new connections to a Service arrive? Client and endpoints are sockets of one thread, so
// that a probe costs some ten microseconds and no change of threads: a packet that crosses the
// lab's links has arrived when the call that sent it returns.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/unique_fd.h"
#include "bench/suite/monotonic.h"
#include "net/socket_address.h"
#include "netns/netns.h"

namespace shunt::bench {

class Prober {
 public:
  // Listens on `endpoints` in `pods`. The other calls come from a thread in the clients' namespace.
  Prober(
      const lab::Netns& pods,
      net::Protocol protocol,
      const net::SocketAddress& service,
      const std::vector<net::SocketAddress>& endpoints);

  // One new connection, or datagram from a new port: the endpoint that it reached, if any.
  std::optional<std::size_t> probe();
  // Until one reaches that endpoint: when it did. Nothing when none does in time.
  std::optional<Nanoseconds> wait_for(std::size_t endpoint, std::chrono::milliseconds patience);

 private:
  std::optional<std::size_t> arrival();
  void drain();

  net::Protocol protocol_;
  net::SocketAddress service_;
  std::vector<UniqueFd> listeners_;
  std::uint32_t sequence_ = 0;
};

}  // namespace shunt::bench
