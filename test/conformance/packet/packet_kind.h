// The packet-flow kind for the runner of the bank.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "packet/capabilities.h"
#include "runner/runner.h"

namespace shunt::conformance::packet {

struct PacketFlowOptions {
  std::string agent;                         // a program, perhaps with arguments
  bool has_status_socket = true;             // unless its help does not know of one
  std::chrono::milliseconds settle{500};     // the quiet that tells that it is done, if not
  std::string api_server;                    // the program test-apiserver
  int patience = 1;                          // a slow machine: everything may take so much longer
  std::optional<Capabilities> capabilities;  // of the agent; none: all
};

// The programs next to our own.
PacketFlowOptions default_packet_flow_options();

// One for each run of the bank: what its cases have in common, and a directory for their logs, of
// which those of failed cases stay.
class PacketFlowKind {
 public:
  explicit PacketFlowKind(PacketFlowOptions options);
  PacketFlowKind(const PacketFlowKind&) = delete;
  PacketFlowKind& operator=(const PacketFlowKind&) = delete;

  // Tries whether the agent starts at all, in this mode, and what this machine can do.
  Preparation preparation() const;
  CaseRunner runner() const;

  // Those of failed cases as well: for a run that was given up.
  void remove_logs() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace shunt::conformance::packet
