// Which back end the configured mode means.
#pragma once

#include <cstdint>
#include <string>

namespace shunt::config {

enum class Mode : std::uint8_t {
  Auto,  // empty, kubeadm's default: nftables, with what an iptables-mode user had
  Nftables,
  Iptables,
  Ipvs
};

enum class BackEnd : std::uint8_t { Nftables, Iptables, Ipvs };

struct ModeDecision {
  BackEnd back_end = BackEnd::Nftables;
  bool available = false;  // this release has it; otherwise the daemon cannot run
  std::string why;         // a sentence for the log: which, and for what reason
};

// Pure.
ModeDecision decide_mode(Mode configured, bool kernel_has_nf_tables);

}  // namespace shunt::config
