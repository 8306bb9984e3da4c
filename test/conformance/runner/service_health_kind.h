// The health ports of Services: over real sockets in a network namespace with the addresses of the
// case, where there is permission for one; else with listeners that are written down, so that what
// listens where and what is answered are judged either way.
#pragma once

#include "runner/runner.h"

namespace shunt::conformance {

CaseResult run_service_health(const nlohmann::json& test_case);          // service-health
CaseResult run_service_health_objects(const nlohmann::json& test_case);  // service-health-objects

}  // namespace shunt::conformance
