// One case of the virtual-servers kind, from an empty namespace to what differs.
#pragma once

#include <string>
#include <vector>

#include "packet/agent_command.h"
#include "virtual_servers/virtual_servers_case.h"

namespace shunt::conformance::virtual_servers {

// What the cases of a run have in common.
struct Bench {
  packet::AgentCommand agent;
  std::string api_server;  // the program test-apiserver
  std::string pki;         // of a server that has run; "": none yet
  int patience = 1;        // how much longer than on an ordinary machine everything may take
};

struct Findings {
  std::vector<std::string> problems;     // the agent or the lab does not work
  std::vector<std::string> differences;  // from what the case expects
  std::vector<std::string> not_judged;
};

// Needs root and a kernel with IPVS. Logs go to `directory`.
Findings run_case(const Case& test_case, const Bench& bench, const std::string& directory);

}  // namespace shunt::conformance::virtual_servers
