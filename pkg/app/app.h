// The daemon as a process: looks whether the node can carry it, does what is asked for once
// (--init-only, --cleanup), or runs until a signal ends it.
#pragma once

#include "base/result.h"
#include "config/options.h"

namespace shunt::app {

// On the main thread, before there is another one.
Result<> run(config::Invocation invocation);

}  // namespace shunt::app
