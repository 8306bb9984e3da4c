#include "packet/agent.h"

#include <fstream>
#include <thread>
#include <utility>

#include "netns/agent_status.h"

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

}  // namespace

json agent_configuration(const Settings& settings) {
  json config{
      {"apiVersion", "kubeproxy.config.k8s.io/v1alpha1"},
      {"kind", "KubeProxyConfiguration"},
      {"mode", "nftables"},
      {"oomScoreAdj", 0},
      // A namespace may not set the machine's connection tracking limits.
      {"conntrack",
       {{"maxPerCore", 0},
        {"min", 0},
        {"tcpEstablishedTimeout", "0s"},
        {"tcpCloseWaitTimeout", "0s"}}},
      {"iptables", {{"localhostNodePorts", settings.localhost_node_ports}}},
      {"nftables",
       {{"masqueradeAll", settings.masquerade_all},
        {"minSyncPeriod", "0s"},
        {"syncPeriod", "30s"}}}};
  // The bank's empty list is every address, the configuration's is the primary ones.
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

Agent::Agent(
    const lab::Netns& where,
    std::string program,
    std::string kubeconfig,
    std::string directory,
    const Settings& settings)
    : where_(&where),
      program_(std::move(program)),
      kubeconfig_(std::move(kubeconfig)),
      directory_(std::move(directory)),
      node_name_(settings.node_name) {
  std::ofstream(directory_ + "/config.json") << agent_configuration(settings).dump(2) << "\n";
}

void Agent::start() {
  process_.emplace(
      *where_,
      lab::ProcessSpec{
          {program_,
           "--config",
           directory_ + "/config.json",
           "--kubeconfig",
           kubeconfig_,
           "--hostname-override",
           node_name_,
           "--status-socket",
           directory_ + "/status",
           "--v=4"},
          {},
          directory_ + "/agent.log"});
}

void Agent::stop() {
  if (process_) {
    process_->terminate();
    process_.reset();
  }
}

std::optional<std::string> Agent::wait_until_applied(
    std::uint64_t version, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::optional<json> last;
  while (std::chrono::steady_clock::now() < deadline) {
    if (!process_ || !process_->running()) {
      return "the agent has ended, see " + directory_ + "/agent.log";
    }
    last = lab::agent_status(directory_ + "/status");
    if (last && lab::has_applied(*last, version)) {
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return "the agent has not applied version " + std::to_string(version) +
         " in time: its status is " + (last ? last->dump() : "unknown");
}

}  // namespace shunt::conformance::packet
