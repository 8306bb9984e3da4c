// A KubeProxyConfiguration in YAML or JSON, into settings by the path of the field.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/value.h"

namespace shunt::config {

inline constexpr std::size_t kLongestFile = 1U << 20;

struct ConfigFile {
  Settings settings;                  // what is null there is absent
  std::vector<std::string> warnings;  // unknown fields, and those that stand there twice
};

// Strict about types, kind and syntax, as kube-proxy; about names it warns.
Result<ConfigFile> parse_config_file(std::string_view text);

// The bytes of a file; longer than kLongestFile is an error.
Result<std::string> read_file(const std::string& path);

}  // namespace shunt::config
