// Settings as written, before they are checked: flags and file fill the same struct, the later
// wins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/options.h"

namespace shunt::config {

struct RawSettings {
  std::string kubeconfig;
  std::string content_type;
  std::string accept_content_types;
  std::string master;
  std::string hostname_override;
  std::string mode;
  std::string detect_local_mode;
  std::string bridge_interface;
  std::string interface_name_prefix;
  std::string cluster_cidr;
  std::vector<std::string> node_port_addresses;
  std::string bind_address;
  std::int32_t conntrack_max_per_core = Conntrack{}.max_per_core;
  std::int32_t conntrack_min = Conntrack{}.min;
  std::string tcp_established_timeout = "24h";
  std::string tcp_close_wait_timeout = "1h";
  bool tcp_be_liberal = false;
  std::string udp_timeout = "0s";
  std::string udp_stream_timeout = "0s";
  bool localhost_node_ports = false;
  int masquerade_bit = 14;
  bool masquerade_all = false;
  std::string min_sync_period;
  std::string sync_period;
  int verbosity = 0;
  std::vector<std::string> warnings;
};

// A KubeProxyConfiguration in YAML or JSON on top of what `settings` holds.
Result<> read_config_file(const std::string& path, RawSettings& settings);

// Errors name the field.
Result<Options> check(const RawSettings& raw);

}  // namespace shunt::config
