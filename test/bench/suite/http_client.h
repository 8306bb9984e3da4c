// Requests to the plain port of the test API server over one connection that stays open: a
// measurement must not pay for a connect. One thread.
#pragma once

#include <string>

#include "base/unique_fd.h"
#include "bench/suite/monotonic.h"
#include "net/socket_address.h"
#include "netns/netns.h"

namespace shunt::bench {

struct HttpReply {
  int status = 0;
  std::string body;
  // When the server had stored a write and woken its watchers (X-Sent-Ns); before the request was
  // sent when it does not say.
  Nanoseconds sent = 0;
  Nanoseconds begun = 0;
  Nanoseconds answered = 0;
};

class HttpClient {
 public:
  HttpClient(const lab::Netns& where, const net::SocketAddress& server);

  // Throws when there is no answer, or when it is an error.
  HttpReply request(
      const std::string& method, const std::string& path, const std::string& body = {});
  // The same, and hands back errors as well.
  HttpReply ask(const std::string& method, const std::string& path, const std::string& body = {});

 private:
  std::string read_some();
  std::string read_body(std::string& buffer, const std::string& head);

  const lab::Netns& where_;
  net::SocketAddress server_;
  UniqueFd fd_;
};

}  // namespace shunt::bench
