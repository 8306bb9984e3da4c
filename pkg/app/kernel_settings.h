// Sets what the configuration asks of the kernel's connection tracking (spec/config.md §8), at
// start, each value only where the kernel has another one: in a container /proc/sys is often
// read-only, which does no harm when somebody privileged (`--init-only`) was there before.
#pragma once

#include <string>

#include "base/result.h"
#include "config/options.h"

namespace shunt::app {

// The error names the setting, what it is and what was wanted. Every failure is one: with limits
// that are not those of the configuration a busy node would lose connections for no visible reason.
// `root` is put before /proc and /sys.
Result<> set_up_conntrack(const config::Conntrack& wanted, const std::string& root = "");

}  // namespace shunt::app
