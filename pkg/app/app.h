// Builds every part of the daemon, runs it until told to stop, and takes it apart in reverse.
#pragma once

#include "base/result.h"
#include "config/options.h"

namespace shunt::app {

// Returns after SIGTERM or SIGINT, or with an error when the daemon could not start or only a
// restart can help. The kernel's state stays in place. Call once, from the main thread, before any
// other thread exists.
Result<> run(const config::Options& options);

}  // namespace shunt::app
