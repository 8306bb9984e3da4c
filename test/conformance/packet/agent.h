// The agent under test as a child process in the node's namespace, configured from a case's
// settings.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "netns/netns.h"
#include "netns/process.h"
#include "packet/packet_case.h"

namespace shunt::conformance::packet {

// A KubeProxyConfiguration: JSON, which is YAML.
nlohmann::json agent_configuration(const Settings& settings);

class Agent {
 public:
  Agent(
      const lab::Netns& where,
      std::string program,
      std::string kubeconfig,
      std::string directory,  // for its configuration, status socket and log
      const Settings& settings);

  void start();
  void stop();
  bool stopped() const { return !process_; }

  // Waits until the agent has applied everything up to this version of the API server's store.
  // Answers what is wrong, or nothing.
  std::optional<std::string> wait_until_applied(
      std::uint64_t version, std::chrono::milliseconds timeout);

 private:
  const lab::Netns* where_;
  std::string program_;
  std::string kubeconfig_;
  std::string directory_;
  std::string node_name_;
  std::optional<lab::Process> process_;
};

}  // namespace shunt::conformance::packet
