// What a kubeconfig or a pod's mounts say about reaching the API server: checked, with paths made
// absolute, and nothing read yet that can change later.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/server_url.h"
#include "base/result.h"

namespace shunt::apiserver {

// PEM, inline or in a file that is read again when it changes. At most one of the two.
struct PemSource {
  std::string data;
  std::string file;
  bool empty() const { return data.empty() && file.empty(); }
};

struct ExecPlugin {
  std::string api_version;
  std::string command;
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::string install_hint;
  // The cluster's `client.authentication.k8s.io/exec` extension as JSON, and whether the plugin is
  // told of the cluster at all.
  bool provide_cluster_info = false;
  std::string cluster_config_json;
};

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Access {
  ServerUrl server;
  std::string tls_server_name;  // "": the host of `server`
  PemSource ca;                 // empty: the roots of this system
  bool ca_may_be_missing = false;
  bool disable_compression = false;
  PemSource certificate;  // with key, or neither
  PemSource key;
  std::string token;
  std::string token_file;  // wins over token once it was read
  std::string username;
  std::string password;
  Headers impersonation;
  std::optional<ExecPlugin> exec;
};

// The environment variables and files that a pod finds.
struct PodMounts {
  std::string host;  // KUBERNETES_SERVICE_HOST
  std::string port;  // KUBERNETES_SERVICE_PORT
  std::string directory = "/var/run/secrets/kubernetes.io/serviceaccount";
};
PodMounts pod_mounts_of_this_process();
Result<Access> in_cluster_access(const PodMounts& mounts);

// `master`, unless empty, takes the place of the cluster's server and of its tls-server-name. With
// no `path` there is only the master.
Result<Access> kubeconfig_access(const std::string& path, const std::string& master);

// The same from text; relative paths resolve against `directory`. Pure.
Result<Access> parse_kubeconfig(
    const std::string& text, const std::string& directory, const std::string& master);

// Why the environment (HTTPS_PROXY, NO_PROXY) would have the server reached through a proxy, which
// is not supported; "" when it would not. Pure.
struct ProxyEnvironment {
  std::string https_proxy;
  std::string no_proxy;
};
ProxyEnvironment proxy_environment_of_this_process();
bool wants_proxy(const ProxyEnvironment& environment, const ServerUrl& server);

// Whole, or Error with the path and why. At most 1 MiB: these are credentials.
Result<std::string> read_small_file(const std::string& path);

}  // namespace shunt::apiserver
