// Mode iptables in each variant: how it is configured, and how a test looks at its tables.
#pragma once

#include <optional>
#include <string>

#include "daemon/ipvs_world.h"

// Some kernels have no modules of the legacy variant.
#define SHUNT_NEEDS_IPTABLES(variant)                                   \
  SHUNT_NEEDS_ROOT();                                                   \
  if (const auto why_not = ::shunt::test::why_no_iptables((variant))) { \
    SKIP(*why_not);                                                     \
  }                                                                     \
  static_assert(true)

namespace shunt::test {

inline nlohmann::json with_variant(const std::string& variant) {
  return {{"kubeShunt", {{"iptablesVariant", variant}}}};
}

// iptables-save of both tables that we write, without counters and times.
inline std::string saved_rules(const World& world, const std::string& variant) {
  return world.on_node(
      "for t in filter nat; do iptables-" + variant +
      "-save -t $t | sed -E '/^#/d; s/ \\[[0-9]+:[0-9]+\\]//'; done");
}

// Why this variant cannot be had on this machine; nothing when it can.
std::optional<std::string> why_no_iptables(const std::string& variant);

// The lines of these that are not ours: whoever they belong to, they may not change.
std::string foreign_rules(const World& world, const std::string& variant);

// Chains and rules such as the kubelet and network plugins have, as input for iptables-restore.
std::string kubelet_rules();
std::string plugin_rules();  // of table nat

// Adds them to what is there.
void restore_rules(const World& world, const std::string& variant, const std::string& rules);

}  // namespace shunt::test
