// The conntrack kind of the bank: the real planner, what the sync loop hands over, the real
// reconciler, and a real table in a network namespace of its own. Needs root.
#pragma once

#include "runner/runner.h"

namespace shunt::conformance {

CaseResult run_conntrack(const nlohmann::json& test_case, const RunOptions& options);

}  // namespace shunt::conformance
