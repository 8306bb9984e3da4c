#include "config/mode.h"

namespace shunt::config {

ModeDecision decide_mode(Mode configured, bool kernel_has_nf_tables) {
  switch (configured) {
    case Mode::Auto:
      if (kernel_has_nf_tables) {
        return {
            BackEnd::Nftables,
            true,
            "nftables: no mode is configured and the kernel has nf_tables; settings are those of "
            "the iptables section"};
      }
      return {
          BackEnd::Iptables,
          false,
          "iptables, since no mode is configured and the kernel has no nf_tables; but iptables is "
          "not built yet, so a kernel with nf_tables is needed"};
    case Mode::Nftables:
      return {
          BackEnd::Nftables,
          kernel_has_nf_tables,
          kernel_has_nf_tables ? "nftables, as configured"
                               : "nftables, as configured; but the kernel has no nf_tables"};
    case Mode::Iptables:
      return {
          BackEnd::Iptables,
          false,
          "mode: \"iptables\" is not built yet; \"nftables\" is, and so is an empty mode, which is "
          "nftables with the settings of the iptables section"};
    case Mode::Ipvs:
      return {
          BackEnd::Ipvs,
          false,
          "mode: \"ipvs\" is not built yet; \"nftables\" is, and so is an empty mode, which is "
          "nftables with the settings of the iptables section"};
  }
  return {};
}

}  // namespace shunt::config
