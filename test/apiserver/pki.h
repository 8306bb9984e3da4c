// A certificate authority for tests: everything that a client needs to trust the server and to be
// trusted by it, in one directory that survives restarts.
//
//   ca.crt ca.key  server.crt server.key  client.crt client.key (system:kube-proxy)
//   admin.crt admin.key (kubernetes-admin, system:masters)  token
//   kubeconfig  kubeconfig-token  kubeconfig-admin
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "net/socket_address.h"

namespace shunt::test_api {

// Makes what is missing. The server's certificate is made anew when it does not name every address
// of `addresses`; the others stay as they are.
Result<> ensure_pki(const std::string& directory, const std::vector<net::IpAddress>& addresses);

// `server`: "https://127.0.0.1:6443". An empty `token` makes kubeconfig-token name DIR/token.
Result<> write_kubeconfigs(
    const std::string& directory, const std::string& server, const std::string& token);

}  // namespace shunt::test_api
