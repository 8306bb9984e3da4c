// The state of the agent under test, as its status socket tells it (pkg/health/status_server.h).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace shunt::lab {

// Nothing while nobody answers.
std::optional<nlohmann::json> agent_status(const std::string& socket_path);

// Whether everything up to this version of the API server's store is in the kernel.
bool has_applied(const nlohmann::json& status, std::uint64_t version);

}  // namespace shunt::lab
