// HTTP/1.1 over TLS, for one thread: lists, watches that last for minutes, and small writes.
//
// Why not cpp-httplib, the house's choice elsewhere. With 0.11.4 (Debian 12):
//  - Client::stop() takes the lock that connect and TLS handshake hold: with a server that accepts
//    and then says nothing, stop() returned only after the connection timeout (measured: 5.05 s of
//    5 s). A reflector must stop within a second.
//  - refused is Error::Connection like every other failed connect, and a timeout is Error::Read
//    like an early end of file; the list/watch rules need all of these apart.
//  - the name to verify is always the host: no tls-server-name; intermediate client certificates
//    from memory, keepalive limits and the size of a whole head cannot be set.
// What we need is three methods, three kinds of body and no redirects: these files, http_parser
// (pure) and connection (sockets and OpenSSL), each wait of which also watches the stop descriptor.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "apiserver/connection.h"
#include "apiserver/connector.h"
#include "apiserver/credentials.h"
#include "apiserver/http_parser.h"
#include "apiserver/transport.h"

namespace shunt::apiserver {

struct HttpOptions {
  Millis stall_timeout{std::chrono::seconds(120)};  // no byte for that long: ETIMEDOUT
  ConnectionLimits limits;
  int stop_fd = -1;  // readable: every wait ends, with ECANCELED
};

class HttpStream final : public Transport {
 public:
  // `connector` must outlive it.
  HttpStream(Connector& connector, HttpOptions options);

  // Redirects are answers like any other. A connection that served a complete answer is kept for
  // the next request of the same identity.
  Exchange send(const Request& request, const AnswerSink& sink) override;

 private:
  struct Kept {
    Connection connection;
    std::uint64_t generation = 0;
  };

  Exchange carry_out(const Request& request, const Identity& identity, const AnswerSink& sink);
  std::optional<Kept> take_kept(const Identity& identity);
  Exchange exchange(Kept kept, const std::string& text, bool gzip, const AnswerSink& sink);
  std::string request_text(const Request& request, bool gzip, const Identity& identity) const;

  Connector::Impl& connector_;
  const HttpOptions options_;
  std::optional<Kept> kept_;
  std::array<char, 65536> buffer_{};
};

}  // namespace shunt::apiserver
