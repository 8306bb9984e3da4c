// Flags and file become one set of settings: who wins, and what the default is (spec/config.md §3).
#pragma once

#include <string>
#include <vector>

#include "config/config_file.h"
#include "config/options.h"
#include "config/value.h"

namespace shunt::config {

struct Assembled {
  Settings settings;  // every field of the table, but those that stay unset without a word
  std::vector<std::string> warnings;
};

// `flags` by the name of the flag; `file` is null without --config.
Assembled assemble(const Settings& flags, const ConfigFile* file);

// The section of the file from which the back end of this mode has its settings.
std::string_view section_of(Mode mode);
// Auto for a word that is no mode.
Mode mode_of(std::string_view word);

}  // namespace shunt::config
