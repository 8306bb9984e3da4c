// The runners of the kinds that need no kernel: each takes the objects of a case through the real
// decoder, store, model and topology, and compares what comes out.
#pragma once

#include "runner/runner.h"

namespace shunt::conformance {

CaseResult run_topology(const nlohmann::json& test_case, const RunOptions& options);
CaseResult run_endpoint_merge(const nlohmann::json& test_case, const RunOptions& options);
CaseResult run_service_model(const nlohmann::json& test_case, const RunOptions& options);
// Of Services' health ports over real sockets where it may make a network namespace.
CaseResult run_health(const nlohmann::json& test_case, const RunOptions& options);
CaseResult run_node_config(const nlohmann::json& test_case, const RunOptions& options);

}  // namespace shunt::conformance
