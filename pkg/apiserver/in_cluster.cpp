#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "apiserver/access.h"
#include "base/trimmed.h"
#include "base/unique_fd.h"
#include "net/cidr.h"

namespace shunt::apiserver {
namespace {

constexpr std::size_t kMaxFile = std::size_t{1} << 20;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// One entry of NO_PROXY: an address, a prefix, a domain with or without a leading dot, any of them
// with a port.
bool covers(std::string_view entry, const ServerUrl& server) {
  if (entry == "*") {
    return true;
  }
  if (server.ip) {
    const auto cidr = net::parse_cidr(entry);
    const auto ip = net::parse_ip(entry);
    const auto address = net::parse_socket_address(entry);
    return (cidr && net::contains(*cidr, *server.ip)) || (ip && *ip == *server.ip) ||
           (address && address->ip == *server.ip && address->port == server.port);
  }
  const auto colon = entry.rfind(':');
  if (colon != std::string_view::npos) {
    if (entry.substr(colon + 1) != std::to_string(net::number(server.port))) {
      return false;
    }
    entry = entry.substr(0, colon);
  }
  if (entry.starts_with("*.")) {
    entry.remove_prefix(1);
  }
  if (entry.starts_with('.')) {
    return entry.size() > 1 && server.host.ends_with(entry);
  }
  return server.host == entry ||
         (!entry.empty() && server.host.ends_with("." + std::string(entry)));
}

}  // namespace

Result<std::string> read_small_file(const std::string& path) {
  const auto failure = [&](const char* why, int error) {
    return fail(error == ENOENT ? Errc::NotFound : Errc::Denied, path + ": " + why, error);
  };
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return failure(std::strerror(errno), errno);
  }
  std::string text;
  std::array<char, 8192> buffer{};
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0) {
      return failure(std::strerror(errno), errno);
    }
    if (n == 0) {
      return text;
    }
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (text.size() > kMaxFile) {
      return failure("too large", EFBIG);
    }
  }
}

PodMounts pod_mounts_of_this_process() {
  PodMounts mounts;
  mounts.host = environment("KUBERNETES_SERVICE_HOST");
  mounts.port = environment("KUBERNETES_SERVICE_PORT");
  return mounts;
}

Result<Access> in_cluster_access(const PodMounts& mounts) {
  if (mounts.host.empty() || mounts.port.empty()) {
    return fail(
        Errc::Invalid,
        "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be set, or a "
        "kubeconfig named");
  }
  const bool brackets = mounts.host.find(':') != std::string::npos;
  auto server = parse_server_url(
      "https://" + (brackets ? "[" + mounts.host + "]" : mounts.host) + ":" + mounts.port);
  if (!server) {
    return fail("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT", server.error());
  }
  Access access;
  access.server = std::move(*server);
  access.ca.file = mounts.directory + "/ca.crt";
  access.ca_may_be_missing = true;
  access.token_file = mounts.directory + "/token";
  return access;
}

ProxyEnvironment proxy_environment_of_this_process() {
  const auto either = [](const char* upper, const char* lower) {
    const std::string value = environment(upper);
    return value.empty() ? environment(lower) : value;
  };
  return {either("HTTPS_PROXY", "https_proxy"), either("NO_PROXY", "no_proxy")};
}

bool wants_proxy(const ProxyEnvironment& environment, const ServerUrl& server) {
  const bool local = server.host == "localhost" || (server.ip && net::is_loopback(*server.ip));
  if (environment.https_proxy.empty() || !server.tls || local) {
    return false;
  }
  std::string_view rest = environment.no_proxy;
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    const std::string_view entry = trimmed(rest.substr(0, comma));
    if (!entry.empty() && covers(entry, server)) {
      return false;
    }
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return true;
}

}  // namespace shunt::apiserver
