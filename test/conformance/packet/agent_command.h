// What the agent under test is run as: kube-shunt by default, any agent that reads a
// KubeProxyConfiguration otherwise.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "packet/packet_case.h"

namespace shunt::conformance::packet {

struct AgentCommand {
  std::vector<std::string> words;  // the program and its arguments, {config} and so on unreplaced
  std::string mode = "nftables";
  bool status_socket = true;              // it tells itself when it has applied what
  std::chrono::milliseconds settle{500};  // otherwise: quiet for this long means it has
};

// Words as a shell splits them: blanks, and quotes around blanks. No other magic.
std::vector<std::string> split_command(std::string_view text);

// Asks the program with --help. Takes as long as the program does.
bool offers_status_socket(const std::vector<std::string>& words);

// The files that an agent is given.
struct AgentFiles {
  std::string config;
  std::string kubeconfig;
  std::string status_socket;
};

// {config}, {kubeconfig} and {node} are replaced; without {config}, "--config FILE" is appended.
std::vector<std::string> agent_arguments(
    const AgentCommand& command, const AgentFiles& files, const std::string& node_name);

// Where the configuration wants the agent's /metrics.
inline constexpr const char* kMetricsAddress = "127.0.0.1:10249";

// A KubeProxyConfiguration: JSON, which is YAML. It says everything, so that no flags are needed.
nlohmann::json agent_configuration(
    const Settings& settings, const std::string& mode, const std::string& kubeconfig);

}  // namespace shunt::conformance::packet
