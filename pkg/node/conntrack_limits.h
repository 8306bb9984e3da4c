// Which kernel settings of connection tracking the configuration asks for (spec/config.md §8).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/options.h"

namespace shunt::node {

struct KernelSetting {
  std::string name;  // "nf_conntrack_max": a file of /proc/sys/net/netfilter
  std::int64_t value = 0;
  bool operator==(const KernelSetting&) const = default;
};

inline constexpr char kConntrackMax[] = "nf_conntrack_max";

// In the order of writing. What the configuration leaves to the system is absent.
std::vector<KernelSetting> conntrack_settings(const config::Conntrack& wanted, unsigned cpus);

// The field of the configuration that asks for it.
std::string_view field_of(const KernelSetting& setting);

// The buckets that a table of `max` entries should have at least.
std::int64_t conntrack_buckets(std::int64_t max);

// How many CPUs a line of /sys/devices/system/cpu/online lists ("0-3,8"); 0 when it is no such
// list.
unsigned cpus_in(std::string_view list);

}  // namespace shunt::node
