#include "bench/suite/process_stats.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace shunt::bench {
namespace {

std::string proc(pid_t pid) { return "/proc/" + std::to_string(pid); }

}  // namespace

Memory memory_of(pid_t pid) {
  std::ifstream file(proc(pid) + "/status");
  Memory memory;
  bool found = false;
  for (std::string word; file >> word;) {
    double* const into = word == "VmRSS:"     ? &memory.resident_mb
                         : word == "RssAnon:" ? &memory.anonymous_mb
                         : word == "VmHWM:"   ? &memory.peak_mb
                                              : nullptr;
    if (into != nullptr) {
      double kib = 0;
      file >> kib;
      *into = kib * 1024 / 1e6;
      found = true;
    }
  }
  if (!found) {
    throw std::runtime_error("no process " + std::to_string(pid));
  }
  return memory;
}

Nanoseconds cpu_of(pid_t pid) {
  Nanoseconds sum = 0;
  for (const auto& task : std::filesystem::directory_iterator(proc(pid) + "/task")) {
    Nanoseconds on_cpu = 0;
    if (std::ifstream(task.path() / "schedstat") >> on_cpu) {  // else the thread ended meanwhile
      sum += on_cpu;
    }
  }
  return sum;
}

}  // namespace shunt::bench
