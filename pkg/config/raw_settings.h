// Settings as written, before they are checked: flags and file fill the same struct, the later
// wins.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace shunt::config {

struct RawSettings {
  std::string kubeconfig;
  std::string master;
  std::string hostname_override;
  std::string mode;
  std::string detect_local_mode;
  std::string bridge_interface;
  std::string interface_name_prefix;
  std::string cluster_cidr;
  int masquerade_bit = 14;
  bool masquerade_all = false;
  std::string min_sync_period;
  std::string sync_period;
  int verbosity = 0;
  std::vector<std::string> warnings;
};

// A KubeProxyConfiguration in YAML or JSON on top of what `settings` holds.
Result<> read_config_file(const std::string& path, RawSettings& settings);

}  // namespace shunt::config
