// The picture of the README, from what a run has found. Pure.
#pragma once

#include <string>
#include <vector>

#include "bench/suite/report.h"

namespace shunt::bench {

// "" when the run measured none of what the picture shows.
std::string figure(Report& report, const std::vector<std::string>& sizes, const Machine& machine);

}  // namespace shunt::bench
