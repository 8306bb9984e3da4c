#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "base/handle.h"
#include "obs/families.h"

namespace shunt::obs {
namespace {

using prometheus::MetricType;

void add(MetricFamilies& out, const char* name, const char* help, double value, MetricType type) {
  FamilyOf family(name, help, type);
  family.add(value);
  family.move_to(out);
}

std::string contents_of(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Stat {
  double cpu_seconds = 0;
  double start_seconds = 0;  // after boot
  double virtual_bytes = 0;
  double resident_bytes = 0;
};

// Fields of proc(5), counted from 3: those before stand in front of the last parenthesis, for a
// program may call itself anything.
Stat read_stat() {
  const std::string text = contents_of("/proc/self/stat");
  const std::size_t name_end = text.rfind(')');
  Stat stat;
  if (name_end == std::string::npos) {
    return stat;
  }
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int number = 3; fields >> field; ++number) {
    if (number == 14 || number == 15) {
      stat.cpu_seconds += std::strtod(field.c_str(), nullptr) / ticks;
    } else if (number == 22) {
      stat.start_seconds = std::strtod(field.c_str(), nullptr) / ticks;
    } else if (number == 23) {
      stat.virtual_bytes = std::strtod(field.c_str(), nullptr);
    } else if (number == 24) {
      stat.resident_bytes = std::strtod(field.c_str(), nullptr) * page;
      break;
    }
  }
  return stat;
}

double boot_time() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    double seconds = 0;
    if (word == "btime" && file >> seconds) {
      return seconds;
    }
  }
  return 0;
}

double open_descriptors() {
  const Handle<DIR, ::closedir> directory(::opendir("/proc/self/fd"));
  if (!directory) {
    return 0;
  }
  int count = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    count += entry->d_name[0] != '.' ? 1 : 0;
  }
  return count - 1;  // that of the directory
}

double limit(__rlimit_resource resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
             ? static_cast<double>(limit.rlim_cur)
             : -1;  // as Go's collector says it
}

}  // namespace

void add_process(MetricFamilies& out) {
  const Stat stat = read_stat();
  const auto counter = MetricType::Counter;
  const auto gauge = MetricType::Gauge;
  add(out,
      "process_cpu_seconds_total",
      "Total user and system CPU time spent in seconds.",
      stat.cpu_seconds,
      counter);
  add(out,
      "process_start_time_seconds",
      "Start time of the process since unix epoch in seconds.",
      boot_time() + stat.start_seconds,
      gauge);
  add(out,
      "process_resident_memory_bytes",
      "Resident memory size in bytes.",
      stat.resident_bytes,
      gauge);
  add(out,
      "process_virtual_memory_bytes",
      "Virtual memory size in bytes.",
      stat.virtual_bytes,
      gauge);
  add(out,
      "process_virtual_memory_max_bytes",
      "Maximum amount of virtual memory available in bytes.",
      limit(RLIMIT_AS),
      gauge);
  add(out, "process_open_fds", "Number of open file descriptors.", open_descriptors(), gauge);
  add(out,
      "process_max_fds",
      "Maximum number of open file descriptors.",
      limit(RLIMIT_NOFILE),
      gauge);
}

}  // namespace shunt::obs
