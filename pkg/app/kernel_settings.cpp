#include "app/kernel_settings.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/unique_fd.h"
#include "node/conntrack_limits.h"

namespace shunt::app {
namespace {

using log::kv;

constexpr char kSysctls[] = "/proc/sys/net/netfilter/";
constexpr char kHashSize[] = "/sys/module/nf_conntrack/parameters/hashsize";
constexpr char kOnlineCpus[] = "/sys/devices/system/cpu/online";

std::optional<std::int64_t> read_number(const std::string& path) {
  std::int64_t value = 0;
  return std::ifstream(path) >> value ? std::optional(value) : std::nullopt;
}

// All CPUs of the machine: those that this process may use can be fewer, the connections are not.
unsigned cpus_of(const std::string& root) {
  std::string list;
  std::getline(std::ifstream(root + kOnlineCpus) >> std::ws, list);
  const unsigned online = node::cpus_in(list);
  return online != 0 ? online : std::max(1U, std::thread::hardware_concurrency());
}

Result<> write_number(const std::string& path, std::int64_t value) {
  const std::optional<std::int64_t> before = read_number(path);
  const std::string text = std::to_string(value);
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), text.data(), text.size()) != ssize_t(text.size())) {
    const int error = errno;
    return fail(
        Errc::Denied,
        path + ": cannot be set to " + text +
            (before ? ", it is " + std::to_string(*before) : std::string()) + ": " +
            std::strerror(error),
        error);
  }
  log::info(
      "kernel setting changed",
      {kv("path", path), kv("to", value), kv("from", before ? std::to_string(*before) : "?")});
  return {};
}

}  // namespace

Result<> set_up_conntrack(const config::Conntrack& wanted, const std::string& root) {
  for (const node::KernelSetting& setting : node::conntrack_settings(wanted, cpus_of(root))) {
    const std::string path = root + kSysctls + setting.name;
    const bool is_max = setting.name == node::kConntrackMax;
    if (read_number(path) != setting.value) {
      if (auto written = write_number(path, setting.value); !written) {
        return fail(
            is_max ? "conntrack.maxPerCore (0 leaves the limit alone)" : "conntrack",
            written.error());
      }
    }
    if (is_max) {
      const std::int64_t buckets = node::conntrack_buckets(setting.value);
      const auto now = read_number(root + kHashSize);
      if (!now || *now < buckets) {
        if (auto written = write_number(root + kHashSize, buckets); !written) {
          return fail("conntrack.maxPerCore (0 leaves the limit alone)", written.error());
        }
      }
    }
  }
  return {};
}

}  // namespace shunt::app
