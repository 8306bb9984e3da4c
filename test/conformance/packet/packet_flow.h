// The runner of the packet-flow kind: objects go to a test API server, the agent under test reads
// them there and programs the kernel of a network namespace, and real packets show the result.
//
// Needs root. Everything of a case is made for it and removed after it: namespaces, API server,
// agent.
#pragma once

#include <string>

#include "packet/capabilities.h"
#include "runner/runner.h"

namespace shunt::conformance::packet {

struct PacketFlowOptions {
  std::string agent;       // the program kube-shunt
  std::string api_server;  // the program test-apiserver
  std::string directory;   // logs of failed cases stay there
  Capabilities capabilities = current_capabilities();
};

// The programs next to our own, and a directory of our own under the system's temporary one.
PacketFlowOptions default_packet_flow_options();

CaseRunner packet_flow_runner(PacketFlowOptions options);

}  // namespace shunt::conformance::packet
