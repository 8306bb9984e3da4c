// Settings that are valid each alone and make no sense on this host (spec/config.md §6). Pure.
#pragma once

#include <string>
#include <vector>

#include "config/options.h"
#include "net/ip_address.h"

namespace shunt::config {

struct Doubt {
  bool fatal = false;
  std::string what;  // names the field
  bool operator==(const Doubt&) const = default;
};

// `families`: those that the host has.
std::vector<Doubt> doubts(const Options& options, const std::vector<net::Family>& families);

}  // namespace shunt::config
