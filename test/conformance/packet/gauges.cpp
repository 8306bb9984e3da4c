#include "packet/gauges.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace shunt::conformance::packet {
namespace {

constexpr std::string_view kName = "kubeproxy_sync_proxy_rules_no_local_endpoints_total{";

}  // namespace

std::optional<nlohmann::json> gauges_in_metrics(std::string_view text) {
  nlohmann::json gauges = nlohmann::json::object();
  while (!text.empty()) {
    const std::string line(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t labels_end = line.rfind('}');
    if (!line.starts_with(kName) || labels_end == std::string::npos) {
      continue;
    }
    const auto value =
        static_cast<std::size_t>(std::strtod(line.c_str() + labels_end + 1, nullptr));
    for (const char* const policy : {"internal", "external"}) {
      const std::string label = std::string("traffic_policy=\"") + policy + "\"";
      if (line.find(label) < labels_end) {
        gauges[policy] = gauges.value(policy, std::size_t{0}) + value;
      }
    }
  }
  return gauges.size() == 2 ? std::optional(gauges) : std::nullopt;
}

}  // namespace shunt::conformance::packet
