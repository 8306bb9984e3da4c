#include "config/mode.h"

namespace shunt::config {
namespace {

ModeDecision decide_ipvs(bool kernel_has_nf_tables, bool kernel_has_ipvs) {
  ModeDecision out{BackEnd::Ipvs, kernel_has_nf_tables && kernel_has_ipvs, "ipvs, as configured"};
  if (out.available) {
    out.why += ", with nftables beside it for masquerading, source ranges and refusals";
    return out;
  }
  if (!kernel_has_ipvs) {
    out.why += "; but the kernel has no IPVS (module ip_vs)";
  }
  if (!kernel_has_nf_tables) {
    out.why +=
        "; but the kernel has no nf_tables, which masquerading, source ranges and refusals need in "
        "this mode, too";
  }
  return out;
}

}  // namespace

std::string_view name_of_back_end(Mode running) {
  return running == Mode::Ipvs ? "ipvs" : running == Mode::Iptables ? "iptables" : "nftables";
}

ModeDecision decide_mode(Mode configured, bool kernel_has_nf_tables, bool kernel_has_ipvs) {
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
          true,
          "iptables, since no mode is configured and the kernel has no nf_tables"};
    case Mode::Nftables:
      return {
          BackEnd::Nftables,
          kernel_has_nf_tables,
          kernel_has_nf_tables ? "nftables, as configured"
                               : "nftables, as configured; but the kernel has no nf_tables"};
    case Mode::Iptables:
      return {BackEnd::Iptables, true, "iptables, as configured"};
    case Mode::Ipvs:
      return decide_ipvs(kernel_has_nf_tables, kernel_has_ipvs);
  }
  return {};
}

}  // namespace shunt::config
