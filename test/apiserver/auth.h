// Who is asking, and may they.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "test/apiserver/request.h"
#include "test/apiserver/status.h"

namespace shunt::test_api {

struct Identity {
  std::string user;
  bool admin = false;  // of group system:masters
};

struct AuthOptions {
  std::vector<std::string> tokens;        // of system:kube-proxy
  std::vector<std::string> admin_tokens;  // of kubernetes-admin
  std::string token_file;  // more tokens of system:kube-proxy, one a line; read at each request,
                           // so that a test can rotate them
  bool rbac = false;       // system:kube-proxy may only do what its ClusterRole says
};

Answer<Identity> authenticate(const AuthOptions& options, const Request& request);
std::optional<Status> check_access(
    const AuthOptions& options,
    const Identity& identity,
    std::string_view verb,
    const Target& target);

}  // namespace shunt::test_api
