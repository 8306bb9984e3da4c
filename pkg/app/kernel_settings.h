// Sets what the configuration asks of the kernel (spec/config.md §8), at start: connection
// tracking, what the IPVS mode needs (ipvs_settings.h), each value only where the kernel has
// another one, and how unlikely the kernel ends us.
//
// In a container /proc/sys is often read-only. That is no reason to leave a node without Services:
// what cannot be set stays as it is, and the log says so once each. (kube-proxy ends there.)
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/options.h"

namespace shunt::app {

struct UnwrittenSetting {
  std::string path;
  std::optional<std::int64_t> current;  // none: cannot be read either
  std::int64_t wanted = 0;
  std::string error;     // what the kernel said
  std::string how;       // how to get it
  bool serious = false;  // without it something does not work
};

// All settings of the configured mode. Answers with what could not be set.
std::vector<UnwrittenSetting> set_up_kernel(const config::Options& options);

// Answers with what could not be set. `root` is put before /proc and /sys.
std::vector<UnwrittenSetting> set_up_conntrack(
    const config::Conntrack& wanted, const std::string& root = "");

// Sets one file where it has another value; `unwritten` gets it when that fails. `how`: to get it,
// besides --init-only.
void write_setting(
    std::vector<UnwrittenSetting>& unwritten,
    const std::string& path,
    std::int64_t wanted,
    const std::string& how);

// One warning each, an error for what is serious.
void warn_of(const std::vector<UnwrittenSetting>& settings);
// For --init-only, which has nothing to go on with: all of them in one error.
Result<> refuse(const std::vector<UnwrittenSetting>& settings);

// Tries twice; a failure is a line for the curious, since nothing depends on it.
void set_oom_score_adj(
    std::int32_t value,
    const std::string& root = "",
    std::chrono::milliseconds pause = std::chrono::milliseconds(100));

}  // namespace shunt::app
