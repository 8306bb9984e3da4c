// kube-proxy's feature gates.
#pragma once

#include <string>
#include <vector>

#include "config/value.h"

namespace shunt::config {

inline constexpr char kExternalIpsGate[] = "AllowServiceExternalIPs";
inline constexpr char kLogAlphaGate[] = "LoggingAlphaOptions";

bool enabled(const Gates& gates, std::string_view name);

struct GateFindings {
  std::vector<std::string> violations;
  std::vector<std::string> warnings;
};
GateFindings look_at(const Gates& gates);

}  // namespace shunt::config
