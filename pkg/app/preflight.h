// What must be so before the daemon can do anything, looked at once at start: a missing capability
// or kernel feature is named with the way to get it, instead of as an EPERM from some corner later.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/options.h"

namespace shunt::app {

// What cannot be found out is unknown, and no reason to stop.
struct Facts {
  std::optional<bool> net_admin;  // CAP_NET_ADMIN is in effect
  std::optional<bool> nf_tables;  // the kernel answers nf_tables requests
  std::optional<bool> conntrack;
  std::optional<bool> ipv4_forwarding;
  std::optional<bool> ipv6_forwarding;  // unknown also where there is no IPv6
  // Only looked at for the IPVS mode, since asking makes the kernel load its modules.
  std::optional<bool> ipvs;   // the kernel answers IPVS requests
  std::optional<bool> dummy;  // it makes dummy devices, of which kube-ipvs0 is one
};

struct Finding {
  bool fatal = false;
  std::string what;
  std::string how;  // to get it
  bool operator==(const Finding&) const = default;
};

// Pure. That nf_tables is missing is fatal only for a mode that needs it, which decide_mode() says.
std::vector<Finding> preflight(const Facts& facts);

// What makes no sense together on this host is an error, or a warning in the log. At start and for
// each configuration that is read later. Answers with the mode to run in: where none is configured,
// that follows the kernel.
Result<config::Mode> judge_settings(const config::Options& options, const Facts& facts);

// Reads /proc and asks the kernel. `root` is put before /proc.
Facts gather_facts(config::Mode mode, const std::string& root = "");

}  // namespace shunt::app
