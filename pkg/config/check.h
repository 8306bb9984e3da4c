// Settings into Options: everything that is wrong is found in one go (spec/config.md §2).
#pragma once

#include <string>
#include <vector>

#include "config/options.h"
#include "config/value.h"

namespace shunt::config {

struct Checked {
  Options options;                      // when there are no violations
  std::vector<std::string> violations;  // each names its field
  std::vector<std::string> warnings;
};

Checked check(const Settings& settings);

}  // namespace shunt::config
