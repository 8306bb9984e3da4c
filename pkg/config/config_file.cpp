#include <yaml-cpp/yaml.h>

#include <set>

#include "config/raw_settings.h"

namespace shunt::config {
namespace {

// Where a field of the file goes. `T` is how YAML must read it.
template <typename T>
void take(const YAML::Node& parent, const char* name, T& target) {
  if (const YAML::Node node = parent[name]; node && !node.IsNull()) {
    target = node.as<T>();
  }
}

// Fields that are used, by section; the others of kube-proxy's file are accepted and do nothing
// yet.
const std::set<std::string>& used_fields() {
  static const std::set<std::string> used{
      "apiVersion",
      "kind",
      "clientConnection",
      "hostnameOverride",
      "mode",
      "nftables",
      "detectLocalMode",
      "detectLocal",
      "clusterCIDR",
      "logging"};
  return used;
}

void read_document(const YAML::Node& file, RawSettings& settings) {
  if (const YAML::Node client = file["clientConnection"]; client && client.IsMap()) {
    take(client, "kubeconfig", settings.kubeconfig);
  }
  take(file, "hostnameOverride", settings.hostname_override);
  take(file, "mode", settings.mode);
  take(file, "detectLocalMode", settings.detect_local_mode);
  take(file, "clusterCIDR", settings.cluster_cidr);
  if (const YAML::Node local = file["detectLocal"]; local && local.IsMap()) {
    take(local, "bridgeInterface", settings.bridge_interface);
    take(local, "interfaceNamePrefix", settings.interface_name_prefix);
  }
  if (const YAML::Node nft = file["nftables"]; nft && nft.IsMap()) {
    take(nft, "masqueradeBit", settings.masquerade_bit);
    take(nft, "masqueradeAll", settings.masquerade_all);
    take(nft, "minSyncPeriod", settings.min_sync_period);
    take(nft, "syncPeriod", settings.sync_period);
  }
  if (const YAML::Node logging = file["logging"]; logging && logging.IsMap()) {
    take(logging, "verbosity", settings.verbosity);
  }
  for (const auto& entry : file) {
    const auto name = entry.first.as<std::string>();
    if (!used_fields().contains(name) && !entry.second.IsNull()) {
      settings.warnings.push_back(name);
    }
  }
}

}  // namespace

Result<> read_config_file(const std::string& path, RawSettings& settings) {
  try {
    const YAML::Node file = YAML::LoadFile(path);
    if (!file.IsMap() || file["kind"].as<std::string>("") != "KubeProxyConfiguration" ||
        file["apiVersion"].as<std::string>("") != "kubeproxy.config.k8s.io/v1alpha1") {
      return fail(
          Errc::Invalid,
          path + ": not a KubeProxyConfiguration of kubeproxy.config.k8s.io/v1alpha1");
    }
    read_document(file, settings);
  } catch (const YAML::Exception& error) {
    return fail(Errc::Invalid, path + ": " + error.what());
  }
  return {};
}

}  // namespace shunt::config
