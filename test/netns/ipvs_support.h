// Whether this machine's kernel has what a back end for IPVS needs. The kernel is asked, not its
// version.
#pragma once

#include <optional>
#include <string>

namespace shunt::lab {

// Why there is no IPVS here, or nothing. Needs root; looks into a network namespace of its own, so
// nothing stays, but for modules that the kernel has loaded.
std::optional<std::string> why_no_ipvs();

}  // namespace shunt::lab
