// The inside of a Connector: what http_stream needs of it.
#pragma once

#include <memory>
#include <string>

#include "apiserver/connection.h"
#include "apiserver/connector.h"
#include "apiserver/credentials.h"
#include "apiserver/resolver.h"

namespace shunt::apiserver {

// Thread-safe.
class Connector::Impl {
 public:
  Impl(std::unique_ptr<Credentials> credentials, ConnectorOptions options);

  const ServerUrl server;
  const std::string server_text;
  const std::string user_agent;
  const std::string tls_name;  // whom the server must prove to be
  const bool compression;      // worth asking for
  const RequestObserver on_request;

  Credentials& credentials() { return *credentials_; }

  Result<Connection> connect(const Identity& identity, const ConnectionLimits& limits, int stop_fd);

 private:
  std::unique_ptr<Credentials> credentials_;
  Resolver resolver_;
};

}  // namespace shunt::apiserver
