// How a test server is set up: the flags of test-apiserver as a value.
#pragma once

#include <string>
#include <vector>

#include "net/socket_address.h"
#include "test/apiserver/auth.h"

namespace shunt::test_api {

struct ServerOptions {
  std::vector<net::SocketAddress> listen;           // HTTPS; port 0 is any free one
  std::vector<net::SocketAddress> insecure_listen;  // plain HTTP, everything allowed, /_test verbs
  std::string pki;  // directory of CA, certificates and kubeconfigs, made when absent
  std::string tls_cert, tls_key, client_ca;  // instead of `pki`
  AuthOptions auth;
  bool streaming_lists = true;
  bool protobuf = true;
  int bookmark_interval_ms = 60000;
  std::size_t log_size = 10000;   // changes a resource that watches may start from
  std::vector<std::string> load;  // manifests
  std::string generate;           // JSON, as POST /_test/generate takes it
  std::string state;              // journal: objects and versions over restarts
  bool forget_log_after_restart = false;
};

}  // namespace shunt::test_api
