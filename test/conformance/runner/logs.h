// Where the logs of a run's cases are, of which those of failed cases stay.
#pragma once

#include <string>

namespace shunt::conformance {

std::string make_logs_directory();  // throws when there can be none
void remove_logs_directory(const std::string& directory);

}  // namespace shunt::conformance
