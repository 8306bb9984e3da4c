// The command line as kube-proxy's flag library reads it: "--flag value", "--flag=value" (also with
// nothing after "="), "--flag" for true, "-v2", "_" for "-" in names; the last value of a flag
// counts, lists and maps are put together; an argument that is no flag is an error.
#pragma once

#include <string>
#include <vector>

#include "config/value.h"

namespace shunt::config {

// By name of the flag; only those that were given.
Result<Settings> parse_flags(const std::vector<std::string>& arguments);

}  // namespace shunt::config
