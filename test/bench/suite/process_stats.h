// What a process costs: its memory and the CPU time of its threads, as /proc tells it.
#pragma once

#include <sys/types.h>

#include "bench/suite/monotonic.h"

namespace shunt::bench {

struct Memory {
  double resident_mb = 0;   // VmRSS; MB are 10^6 bytes
  double anonymous_mb = 0;  // RssAnon: its own, without the program's file
  double peak_mb = 0;       // VmHWM
};

// Throw when the process is gone.
Memory memory_of(pid_t pid);
Nanoseconds cpu_of(pid_t pid);  // of all threads that live, since they began

}  // namespace shunt::bench
