// Go's durations, as kube-proxy's flags and file write them: "30s", "1m30s", "2h22m", "100ms".
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace shunt::config {

using Nanos = std::chrono::nanoseconds;

std::optional<Nanos> parse_go_duration(std::string_view text);
std::string go_duration(Nanos duration);  // "15m0s", "1.5s", "0s"

}  // namespace shunt::config
