// One TCP connection to the API server, with TLS unless the server is a test's. Every wait ends at
// a deadline or when stop is asked.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "apiserver/deadline.h"
#include "apiserver/tls_context.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "net/socket_address.h"

namespace shunt::apiserver {

struct ConnectionLimits {
  Millis dial{std::chrono::seconds(30)};
  Millis handshake{std::chrono::seconds(10)};
};

class Connection {
 public:
  // Tries the addresses in turn. Errors: ECONNREFUSED when one of them refused and none answered.
  static Result<Connection> dial(
      std::span<const net::IpAddress> addresses,
      net::Port port,
      const ConnectionLimits& limits,
      int stop_fd);

  // Errors: Denied when the server is not who it should be.
  Result<> start_tls(const TlsContext& context, const std::string& name, const Deadline& deadline);

  // 0: the other side ended in good order (under TLS: said so).
  Result<std::size_t> read(std::span<char> into, const Deadline& deadline);
  Result<> write(std::string_view bytes, const Deadline& deadline);

  // Something to read although nothing was asked: an idle connection that is no longer good.
  bool stale() const;

 private:
  explicit Connection(UniqueFd fd) : fd_(std::move(fd)) {}
  // After an SSL call that answered `result`: waits for what it wants, or says why it failed.
  Result<> settle(int result, const Deadline& deadline);

  UniqueFd fd_;
  Ssl ssl_;
};

}  // namespace shunt::apiserver
