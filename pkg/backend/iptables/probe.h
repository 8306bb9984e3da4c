// The look at our rules (backend/probe.h): each question reads a table with iptables-save. Counts
// no connections.
#pragma once

#include <memory>

#include "backend/iptables/frame.h"
#include "backend/iptables/tables.h"
#include "backend/probe.h"

namespace shunt::backend::iptables {

class Probe final : public backend::Probe {
 public:
  Probe(FrameSettings settings, std::unique_ptr<Tables> tables)
      : settings_(settings), tables_(std::move(tables)) {}

  // The jumps, the chains that all Services share, and the rules that do not follow Services.
  Result<bool> program_is_whole() override;
  Result<bool> has(const desired::FrontendKey& frontend) override;
  Result<bool> has_any() override;
  Result<std::vector<Connections>> new_connections() override { return std::vector<Connections>{}; }

 private:
  FrameSettings settings_;
  std::unique_ptr<Tables> tables_;
};

}  // namespace shunt::backend::iptables
