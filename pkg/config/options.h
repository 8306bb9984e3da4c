// The daemon's settings: kube-proxy's flags and its KubeProxyConfiguration file (spec/config.md
// §1-§3), as far as this release uses them, into one checked struct. Fields and flags of kube-proxy
// that are not listed there are accepted in a file with a warning.
#pragma once

#include <chrono>
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

// What kube-proxy asks of the kernel's connection tracking; 0 leaves a value to the system.
struct Conntrack {
  std::int32_t max_per_core = 32'768;
  std::int32_t min = 131'072;
  std::chrono::seconds tcp_established_timeout{86'400};
  std::chrono::seconds tcp_close_wait_timeout{3'600};
  bool tcp_be_liberal = false;
  std::chrono::seconds udp_timeout{0};
  std::chrono::seconds udp_stream_timeout{0};
};

struct Options {
  std::string kubeconfig;  // "" and no master: in-cluster
  std::string master;
  std::string content_type;          // clientConnection.contentType; "": protobuf
  std::string accept_content_types;  // clientConnection.acceptContentTypes
  std::string node_name;             // resolved: the override, or the host's name; lower case
  std::uint32_t masquerade_bit = 14;
  bool masquerade_all = false;
  Millis min_sync_period{0};
  Millis sync_period{30'000};
  DetectLocalMode detect_local = DetectLocalMode::ClusterCidr;
  std::string bridge_interface;
  std::string interface_name_prefix;
  std::vector<net::Cidr> cluster_cidrs;
  std::vector<net::Cidr> node_port_addresses;  // none: `primary`, the Node's own addresses
  net::IpAddress bind_address;                 // unspecified: the Node's addresses stand
  Conntrack conntrack;
  int verbosity = 0;
  bool init_only = false;  // do what needs privileges, and leave

  // Our own.
  bool localhost_node_ports = false;    // kubeShunt.localhostNodePorts
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

// Errors name the flag or field.
Result<Invocation> parse_command_line(int argc, const char* const* argv);

// "30s", "1m30s", "2h22m", "100ms": Go's durations, not negative.
std::optional<Millis> parse_duration(std::string_view text);

}  // namespace shunt::config
