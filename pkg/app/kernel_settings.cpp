#include "app/kernel_settings.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include "app/ipvs_settings.h"
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

// The kernel's word when it refuses.
std::optional<std::string> write_number(const std::string& path, std::int64_t value) {
  const std::string text = std::to_string(value);
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), text.data(), text.size()) != ssize_t(text.size())) {
    return std::strerror(errno);
  }
  return std::nullopt;
}

std::string text_of(const std::optional<std::int64_t>& value) {
  return value ? std::to_string(*value) : "unknown";
}

std::string without(std::string_view field) {
  const bool on_or_off = field == "conntrack.tcpBeLiberal";
  return "set " + std::string(field) + (on_or_off ? " to false" : " to 0") +
         " to leave it to the system";
}

}  // namespace

void write_setting(
    std::vector<UnwrittenSetting>& unwritten,
    const std::string& path,
    std::int64_t wanted,
    const std::string& how) {
  const std::optional<std::int64_t> current = read_number(path);
  if (current == wanted) {
    return;
  }
  if (const auto error = write_number(path, wanted)) {
    unwritten.push_back(
        {path,
         current,
         wanted,
         *error,
         "run kube-shunt --init-only in a privileged init container, or " + how});
    return;
  }
  log::info(
      "kernel setting changed", {kv("path", path), kv("to", wanted), kv("from", text_of(current))});
}

std::vector<UnwrittenSetting> set_up_kernel(const config::Options& options) {
  std::vector<UnwrittenSetting> unwritten = set_up_conntrack(options.conntrack);
  if (options.mode == config::Mode::Ipvs) {
    const auto more = set_up_ipvs(options.ipvs);
    unwritten.insert(unwritten.end(), more.begin(), more.end());
  }
  if (options.route_localnet) {
    write_setting(
        unwritten,
        "/proc/sys/net/ipv4/conf/all/route_localnet",
        1,
        "give kubeShunt.localhostNodePorts, true for a relay or false for none");
  }
  return unwritten;
}

std::vector<UnwrittenSetting> set_up_conntrack(
    const config::Conntrack& wanted, const std::string& root) {
  std::vector<UnwrittenSetting> unwritten;
  for (const node::KernelSetting& setting : node::conntrack_settings(wanted, cpus_of(root))) {
    const std::string how = without(node::field_of(setting));
    write_setting(unwritten, root + kSysctls + setting.name, setting.value, how);
    if (setting.name == node::kConntrackMax) {
      const std::int64_t buckets = node::conntrack_buckets(setting.value);
      const auto now = read_number(root + kHashSize);
      if (!now || *now < buckets) {
        write_setting(unwritten, root + kHashSize, buckets, how);
      }
    }
  }
  return unwritten;
}

void warn_of(const std::vector<UnwrittenSetting>& settings) {
  for (const UnwrittenSetting& setting : settings) {
    log::write(
        setting.serious ? log::Level::Error : log::Level::Warn,
        "kernel setting cannot be written, it stays as it is",
        {kv("path", setting.path),
         kv("current", text_of(setting.current)),
         kv("wanted", setting.wanted),
         kv("error", setting.error),
         kv("how", setting.how)});
  }
}

Result<> refuse(const std::vector<UnwrittenSetting>& settings) {
  if (settings.empty()) {
    return {};
  }
  std::string what = "kernel settings cannot be written";
  for (const UnwrittenSetting& setting : settings) {
    what += "; " + setting.path;
    what += " to " + std::to_string(setting.wanted);
    what += " from " + text_of(setting.current);
    what += ": " + setting.error;
  }
  return fail(Errc::Denied, std::move(what));
}

void set_oom_score_adj(
    std::int32_t value, const std::string& root, std::chrono::milliseconds pause) {
  const std::string path = root + "/proc/self/oom_score_adj";
  std::optional<std::string> error = write_number(path, value);
  if (error) {
    std::this_thread::sleep_for(pause);  // at start, before anything waits for us
    error = write_number(path, value);
  }
  if (error) {
    log::debug("oom_score_adj cannot be set", {kv("wanted", value), kv("error", *error)});
  }
}

}  // namespace shunt::app
