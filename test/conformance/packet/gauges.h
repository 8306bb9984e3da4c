// The gauges of Services with a Local policy and endpoints only elsewhere, as agents tell them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace shunt::conformance::packet {

// {"internal": N, "external": N} from the text that kube-proxy and others serve as /metrics, summed
// over the families. Nothing when the text does not have them.
std::optional<nlohmann::json> gauges_in_metrics(std::string_view text);

}  // namespace shunt::conformance::packet
