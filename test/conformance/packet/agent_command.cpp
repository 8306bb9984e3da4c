#include "packet/agent_command.h"

#include <algorithm>
#include <stdexcept>

#include "netns/process.h"

namespace shunt::conformance::packet {
namespace {

using nlohmann::json;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ",") + word;
  }
  return text;
}

bool replace(std::string& text, std::string_view what, const std::string& with) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) {
    return false;
  }
  text.replace(at, what.size(), with);
  return true;
}

}  // namespace

std::vector<std::string> split_command(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      quote == c ? static_cast<void>(quote = 0) : word.push_back(c);
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (in_word) {
        words.push_back(std::exchange(word, {}));
      }
      in_word = false;
    } else {
      word.push_back(c);
      in_word = true;
    }
  }
  if (in_word) {
    words.push_back(word);
  }
  return words;
}

bool offers_status_socket(const std::vector<std::string>& words) {
  std::vector<std::string> asking = words;
  asking.emplace_back("--help");
  std::string help;
  try {
    help = lab::run_program(asking);
  } catch (const std::runtime_error& error) {
    help = error.what();  // help with an exit code is help as well
  }
  return help.find("--status-socket") != std::string::npos;
}

std::vector<std::string> agent_arguments(
    const AgentCommand& command, const AgentFiles& files, const std::string& node_name) {
  std::vector<std::string> words = command.words;
  bool has_config = false;
  for (std::string& word : words) {
    has_config = replace(word, "{config}", files.config) || has_config;
    replace(word, "{kubeconfig}", files.kubeconfig);
    replace(word, "{node}", node_name);
  }
  if (!has_config) {
    words.insert(words.end(), {"--config", files.config});
  }
  if (command.status_socket) {
    words.insert(words.end(), {"--status-socket", files.status_socket});
  }
  return words;
}

json agent_configuration(
    const Settings& settings, const std::string& mode, const std::string& kubeconfig) {
  json config{
      {"apiVersion", "kubeproxy.config.k8s.io/v1alpha1"},
      {"kind", "KubeProxyConfiguration"},
      {"clientConnection", {{"kubeconfig", kubeconfig}}},
      {"hostnameOverride", settings.node_name},
      {"logging", {{"verbosity", 4}}},
      {"mode", mode},
      {"metricsBindAddress", kMetricsAddress},
      {"oomScoreAdj", 0},
      // A namespace may not set the machine's connection tracking limits.
      {"conntrack",
       {{"maxPerCore", 0},
        {"min", 0},
        {"tcpEstablishedTimeout", "0s"},
        {"tcpCloseWaitTimeout", "0s"}}},
      // The iptables mode looks for removed rules once a period; the IPVS mode reads masqueradeAll
      // here as well. It follows the profile that has no node ports on loopback.
      {"iptables",
       {{"localhostNodePorts", settings.localhost_node_ports && mode != "ipvs"},
        {"masqueradeAll", settings.masquerade_all},
        {"minSyncPeriod", "0s"},
        {"syncPeriod", "1s"}}},
      {"ipvs",
       {{"scheduler", settings.ipvs_scheduler},
        {"excludeCIDRs", settings.ipvs_exclude_cidrs},
        {"minSyncPeriod", "0s"},
        {"syncPeriod", "30s"}}},
      {"nftables",
       {{"masqueradeAll", settings.masquerade_all},
        {"minSyncPeriod", "0s"},
        {"syncPeriod", "30s"}}}};
  // The bank's empty list is every address; the configuration's is that in mode ipvs, and the
  // primary ones in mode nftables. "primary" means the same in both.
  config["nodePortAddresses"] = settings.node_port_addresses.empty()
                                    ? std::vector<std::string>{"0.0.0.0/0", "::/0"}
                                    : settings.node_port_addresses;
  const bool none = settings.detect_local_mode == "none";
  config["detectLocalMode"] = none ? "ClusterCIDR" : settings.detect_local_mode;
  if (settings.detect_local_mode == "ClusterCIDR") {
    config["clusterCIDR"] = joined(settings.detect_local_cidrs);
  }
  config["detectLocal"] = {
      {"bridgeInterface", settings.detect_local_interface},
      {"interfaceNamePrefix", settings.detect_local_prefix}};
  return config;
}

}  // namespace shunt::conformance::packet
