// The daemon's settings: kube-proxy's flags and its KubeProxyConfiguration file (spec/config.md
// §1-§3), as far as this release uses them, into one checked struct. Fields and flags of kube-proxy
// that are not listed there are accepted in a file with a warning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/backoff.h"
#include "base/result.h"
#include "net/cidr.h"

namespace shunt::config {

enum class DetectLocalMode : std::uint8_t {
  ClusterCidr,
  NodeCidr,
  BridgeInterface,
  InterfaceNamePrefix
};

struct Options {
  std::string kubeconfig;  // "" and no master: in-cluster
  std::string master;
  std::string node_name;  // resolved: the override, or the host's name; lower case
  std::uint32_t masquerade_bit = 14;
  bool masquerade_all = false;
  Millis min_sync_period{0};
  Millis sync_period{30'000};
  DetectLocalMode detect_local = DetectLocalMode::ClusterCidr;
  std::string bridge_interface;
  std::string interface_name_prefix;
  std::vector<net::Cidr> cluster_cidrs;
  int verbosity = 0;

  // Our own.
  std::string status_socket;            // "" for none
  Millis watch_stall_timeout{120'000};  // a watch without a byte for this long is replaced
  std::vector<std::string> warnings;    // settings that were accepted and have no effect
};

// What the command line asks for besides running.
struct Invocation {
  Options options;
  std::optional<int> exit_code;  // set: print `text` and leave
  std::string text;
};

// Errors (Errc::Invalid) name the flag or field.
Result<Invocation> parse_command_line(int argc, const char* const* argv);

// "30s", "1m30s", "2h22m", "100ms": Go's durations, not negative.
std::optional<Millis> parse_duration(std::string_view text);

}  // namespace shunt::config
