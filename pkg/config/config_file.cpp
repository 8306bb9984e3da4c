#include <yaml-cpp/yaml.h>

#include <set>

#include "config/raw_settings.h"

namespace shunt::config {
namespace {

// Where a field of the file goes. `T` is how YAML must read it.
template <typename T>
void take(const YAML::Node& parent, const char* name, T& target) {
  const YAML::Node node = parent[name];
  if (!node || node.IsNull()) {
    return;
  }
  try {
    target = node.as<T>();
  } catch (const YAML::BadConversion& error) {
    throw YAML::ParserException(error.mark, std::string(name) + " is of another type");
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
      "nodePortAddresses",
      "bindAddress",
      "conntrack",
      "logging",
      "kubeShunt"};
  return used;
}

void read_conntrack(const YAML::Node& conntrack, RawSettings& settings) {
  take(conntrack, "maxPerCore", settings.conntrack_max_per_core);
  take(conntrack, "min", settings.conntrack_min);
  take(conntrack, "tcpEstablishedTimeout", settings.tcp_established_timeout);
  take(conntrack, "tcpCloseWaitTimeout", settings.tcp_close_wait_timeout);
  take(conntrack, "tcpBeLiberal", settings.tcp_be_liberal);
  take(conntrack, "udpTimeout", settings.udp_timeout);
  take(conntrack, "udpStreamTimeout", settings.udp_stream_timeout);
}

void read_document(const YAML::Node& file, RawSettings& settings) {
  if (const YAML::Node client = file["clientConnection"]; client && client.IsMap()) {
    take(client, "kubeconfig", settings.kubeconfig);
    take(client, "contentType", settings.content_type);
    take(client, "acceptContentTypes", settings.accept_content_types);
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
  take(file, "nodePortAddresses", settings.node_port_addresses);
  take(file, "bindAddress", settings.bind_address);
  if (const YAML::Node conntrack = file["conntrack"]; conntrack && conntrack.IsMap()) {
    read_conntrack(conntrack, settings);
  }
  if (const YAML::Node own = file["kubeShunt"]; own && own.IsMap()) {
    take(own, "localhostNodePorts", settings.localhost_node_ports);
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
