#include "test/apiserver/auth.h"

#include <algorithm>
#include <fstream>

namespace shunt::test_api {
namespace {

constexpr std::string_view kProxyUser = "system:kube-proxy";
constexpr std::string_view kAdminUser = "kubernetes-admin";
constexpr std::string_view kAnonymous = "system:anonymous";

bool contains(const std::vector<std::string>& list, const std::string& value) {
  return std::ranges::find(list, value) != list.end();
}

bool in_file(const std::string& path, const std::string& token) {
  if (path.empty()) {
    return false;
  }
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line == token) {
      return true;
    }
  }
  return false;
}

bool proxy_may(std::string_view verb, const Target& target) {
  if (target.plural == "events") {
    return verb == "create" || verb == "patch" || verb == "update";
  }
  const bool readable = target.plural == "services" || target.plural == "endpointslices" ||
                        target.plural == "nodes" || target.plural == "servicecidrs";
  return readable && (verb == "list" || verb == "watch");
}

}  // namespace

Answer<Identity> authenticate(const AuthOptions& options, const Request& request) {
  if (request.trusted_port) {
    return Identity{std::string(kAdminUser), true};
  }
  if (request.certificate) {
    if (!request.certificate->trusted) {
      return refuse(unauthorized());
    }
    return Identity{
        request.certificate->common_name,
        contains(request.certificate->organizations, "system:masters")};
  }
  const std::string authorization = request.header("authorization");
  if (authorization.empty()) {
    return Identity{std::string(kAnonymous), false};
  }
  const std::string_view scheme = "Bearer ";
  const std::string token =
      authorization.starts_with(scheme) ? authorization.substr(scheme.size()) : "";
  if (contains(options.admin_tokens, token)) {
    return Identity{std::string(kAdminUser), true};
  }
  if (contains(options.tokens, token) || in_file(options.token_file, token)) {
    return Identity{std::string(kProxyUser), false};
  }
  return refuse(unauthorized());
}

std::optional<Status> check_access(
    const AuthOptions& options,
    const Identity& identity,
    std::string_view verb,
    const Target& target) {
  if (identity.admin) {
    return std::nullopt;
  }
  const bool known = identity.user != kAnonymous;
  if (known && (!options.rbac || (identity.user == kProxyUser && proxy_may(verb, target)))) {
    return std::nullopt;
  }
  return forbidden(identity.user, verb, target);
}

}  // namespace shunt::test_api
