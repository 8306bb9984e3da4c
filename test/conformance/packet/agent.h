// The agent under test as a child process in the node's namespace, configured from a case's
// settings.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "netns/netns.h"
#include "netns/process.h"
#include "packet/agent_command.h"
#include "packet/api_server.h"
#include "packet/packet_case.h"
#include "packet/settling.h"

namespace shunt::conformance::packet {

class Agent {
 public:
  Agent(
      const lab::Netns& where,
      const ApiServer& server,
      AgentCommand command,
      std::string directory,  // for its configuration, status socket and log
      const Settings& settings);

  void start();
  void stop();
  bool stopped() const { return !process_; }
  // "internal" and "external" Services without local endpoints, from the status socket, or from
  // /metrics for an agent without one. Nothing when it does not tell.
  std::optional<nlohmann::json> gauges() const;

  // Waits until the agent has applied everything up to this version of the API server's store.
  // Answers what is wrong, or nothing.
  std::optional<std::string> wait_until_applied(
      std::uint64_t version, std::chrono::milliseconds timeout);

 private:
  std::optional<nlohmann::json> status() const;  // nothing while it does not answer
  std::optional<std::string> problem_of_process();
  std::string log_file() const { return directory_ + "/agent.log"; }

  const lab::Netns* where_;
  AgentCommand command_;
  AgentFiles files_;
  std::string directory_;
  std::string node_name_;
  std::optional<Settling> settling_;  // for an agent without a status socket
  std::optional<lab::Process> process_;
};

}  // namespace shunt::conformance::packet
