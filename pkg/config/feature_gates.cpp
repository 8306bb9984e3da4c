#include "config/feature_gates.h"

#include <algorithm>
#include <iterator>

namespace shunt::config {
namespace {

struct Gate {
  std::string_view name;
  bool fallback;
  bool locked;
  bool alpha;
};
// Those of kube-proxy 1.36 that concern it or its client; it has the whole set of Kubernetes.
constexpr Gate kGates[] = {
    {"AllAlpha", false, false, false},
    {"AllBeta", false, false, false},
    {kExternalIpsGate, true, false, false},
    {"PreferSameTrafficDistribution", true, true, false},
    {"MultiCIDRServiceAllocator", true, true, false},
    {"NFTablesProxyMode", true, true, false},
    {"ComponentFlagz", true, false, false},
    {"ComponentStatusz", true, false, false},
    {"NativeHistograms", false, false, true},
    {"ContextualLogging", true, false, false},
    {kLogAlphaGate, false, false, true},
    {"LoggingBetaOptions", true, false, false},
    {"WatchListClient", true, false, false},
    {"ClientsAllowCARotation", true, false, false},
    {"InOrderInformers", true, true, false},
};

const Gate* find(std::string_view name) {
  const auto* found = std::ranges::find(kGates, name, &Gate::name);
  return found == std::end(kGates) ? nullptr : found;
}

}  // namespace

bool enabled(const Gates& gates, std::string_view name) {
  if (const auto found = gates.find(std::string(name)); found != gates.end()) {
    return found->second;
  }
  const Gate* gate = find(name);
  const auto all_alpha = gates.find("AllAlpha");
  if (gate != nullptr && gate->alpha && all_alpha != gates.end()) {
    return all_alpha->second;
  }
  return gate != nullptr && gate->fallback;
}

GateFindings look_at(const Gates& gates) {
  GateFindings out;
  for (const auto& [name, on] : gates) {
    const Gate* gate = find(name);
    if (gate == nullptr) {
      out.warnings.push_back("featureGates." + quoted(name) + ": not known here, ignored");
    } else if (gate->locked && on != gate->fallback) {
      out.violations.push_back(
          "featureGates." + name + ": is locked to " + (gate->fallback ? "true" : "false"));
    } else if (on != gate->fallback && name != kExternalIpsGate && name != kLogAlphaGate) {
      out.warnings.push_back("featureGates." + name + ": has no effect here");
    }
  }
  return out;
}

}  // namespace shunt::config
