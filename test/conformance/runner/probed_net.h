// A place to listen in and to be asked from: real sockets in a network namespace of the calling
// thread's own, or a written list.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "health/service_health.h"
#include "http/message.h"
#include "net/socket_address.h"

namespace shunt::conformance {

class ProbedNet {
 public:
  virtual ~ProbedNet() = default;
  virtual std::unique_ptr<health::Listeners> listeners() = 0;
  virtual std::vector<std::string> listening() = 0;  // "0.0.0.0:30000", "[::]:30000"; sorted
  // Nothing: nobody listens there.
  virtual std::optional<http::Response> get(const net::SocketAddress& at) = 0;
};

// Needs CAP_SYS_ADMIN and the program `ip`; nothing without them. Moves the calling thread into a
// new network namespace for good: call it on a thread of its own.
std::unique_ptr<ProbedNet> own_net(const std::vector<net::IpAddress>& addresses);
std::unique_ptr<ProbedNet> written_net(std::vector<net::IpAddress> addresses);

}  // namespace shunt::conformance
