// The runners of the kinds that need no kernel: each takes the objects of a case through the real
// decoder, store, model and topology, and compares what comes out.
#pragma once

#include "runner/runner.h"

namespace shunt::conformance {

CaseResult run_topology(const nlohmann::json& test_case, const RunOptions& options);
CaseResult run_endpoint_merge(const nlohmann::json& test_case, const RunOptions& options);
CaseResult run_service_model(const nlohmann::json& test_case, const RunOptions& options);
// Skips what needs the per-service health servers.
CaseResult run_health(const nlohmann::json& test_case, const RunOptions& options);
CaseResult run_node_config(const nlohmann::json& test_case, const RunOptions& options);

}  // namespace shunt::conformance
