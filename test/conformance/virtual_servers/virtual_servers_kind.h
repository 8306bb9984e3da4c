// The virtual-servers kind of the bank: the agent in a namespace that is a node, and the kernel's
// table of IPVS as ipvsadm shows it.
#pragma once

#include <memory>

#include "packet/packet_kind.h"
#include "runner/runner.h"

namespace shunt::conformance::virtual_servers {

// One for each run of the bank, like packet::PacketFlowKind, whose options it shares.
class VirtualServersKind {
 public:
  explicit VirtualServersKind(packet::PacketFlowOptions options);
  VirtualServersKind(const VirtualServersKind&) = delete;
  VirtualServersKind& operator=(const VirtualServersKind&) = delete;

  Preparation preparation() const;
  CaseRunner runner() const;

  // Those of failed cases as well: for a run that was given up.
  void remove_logs() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace shunt::conformance::virtual_servers
