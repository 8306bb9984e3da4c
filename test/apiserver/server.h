// A Kubernetes API server for tests: services, endpointslices, nodes, servicecidrs and events over
// HTTPS, with the shapes, versions, watches and errors of the real one, and faults on request.
// Written apart from pkg/, so that client and server cannot share a misunderstanding.
//
//   ServerOptions options;
//   options.listen = {*net::parse_socket_address("127.0.0.1:0")};
//   options.pki = dir;
//   auto server = Server::start(options);
//   ... (*server)->url() ...           // the destructor cuts every connection, as a crash would
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "test/apiserver/api.h"
#include "test/apiserver/generator.h"
#include "test/apiserver/http_server.h"
#include "test/apiserver/journal.h"

namespace shunt::test_api {

class Server {
 public:
  static Result<std::unique_ptr<Server>> start(ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    generator_.stop();
    http_.stop();
  }

  // As bound: ports are real ones.
  const std::vector<net::SocketAddress>& addresses() const { return addresses_; }
  const std::vector<net::SocketAddress>& insecure_addresses() const { return insecure_addresses_; }

  // For tests in the same process.
  Store& store() { return store_; }
  Faults& faults() { return faults_; }
  Stats& stats() { return stats_; }

 private:
  explicit Server(ServerOptions options);
  Result<> load();
  Result<> generate();
  Result<> listen();
  Result<std::shared_ptr<SSL_CTX>> tls_context();
  void handle(const Request& request, Response& response);

  ServerOptions options_;
  Journal journal_;
  Store store_;
  Faults faults_;
  Stats stats_;
  Generator generator_;
  HttpServer http_;
  std::vector<net::SocketAddress> addresses_;
  std::vector<net::SocketAddress> insecure_addresses_;
};

}  // namespace shunt::test_api
