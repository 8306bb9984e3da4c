// Which back end the configured mode means.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shunt::config {

enum class Mode : std::uint8_t {
  Auto,  // empty, kubeadm's default: nftables, with what an iptables-mode user had
  Nftables,
  Iptables,
  Ipvs
};

enum class BackEnd : std::uint8_t { Nftables, Iptables, Ipvs };

// "nftables", "ipvs": what /proxyMode answers while the daemon runs in that mode.
std::string_view name_of_back_end(Mode running);

struct ModeDecision {
  BackEnd back_end = BackEnd::Nftables;
  bool available = false;  // this release has it; otherwise the daemon cannot run
  std::string why;         // a sentence for the log: which, and for what reason
};

// Which of the two variants of iptables the iptables mode works with: that of the kubelet and most
// others on the host, or one by name.
enum class IptablesVariant : std::uint8_t { Auto, Nft, Legacy };

// Pure. The IPVS mode needs nf_tables as well: IPVS only balances, and masquerading, source ranges
// and refusals are rules.
ModeDecision decide_mode(Mode configured, bool kernel_has_nf_tables, bool kernel_has_ipvs);

}  // namespace shunt::config
