// One case of the packet-flow kind: objects go to a test API server, the agent under test reads
// them there and programs the kernel of a network namespace, and real packets show the result.
#pragma once

#include <optional>
#include <string>

#include "packet/agent_command.h"
#include "packet/capabilities.h"
#include "packet/packet_case.h"
#include "runner/runner.h"

namespace shunt::conformance::packet {

// What the cases of a run have in common.
struct Bench {
  AgentCommand agent;
  std::string api_server;  // the program test-apiserver
  std::string pki;  // directory with certificates that every server may use; "": each makes its own
  Abilities abilities;
  int patience = 1;   // how much longer than on an ordinary machine everything may take
  std::string needs;  // only flows that name this need, or all of a case that does; "": all
};

// The keys of a case's API server: a directory of its own, where the server writes kubeconfigs as
// well. A copy of what has been made already, if anything has.
std::string make_pki(const std::string& made, std::string directory);

// Needs root. Everything of a case is made for it and removed after it: namespaces, API server,
// agent. Logs go to `directory`.
CaseResult run_case(const Case& packet_case, const Bench& bench, const std::string& directory);

// Why no flow of the case can be judged, or nothing.
std::optional<std::string> reason_to_skip(const Case& packet_case, const Abilities& abilities);

}  // namespace shunt::conformance::packet
