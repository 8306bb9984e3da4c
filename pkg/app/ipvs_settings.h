// What the IPVS mode asks of the kernel besides virtual servers: its settings below net.ipv4.vs,
// ARP for strictARP, and its timeouts (spec/ipvs.md §2). At start and at a reload, in the network
// namespace of the thread. As for connection tracking (kernel_settings.h), what cannot be set is no
// reason to leave a node without Services.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/kernel_settings.h"
#include "config/options.h"

namespace shunt::app {

struct KernelVersion {
  unsigned major = 0;
  unsigned minor = 0;
  auto operator<=>(const KernelVersion&) const = default;
};
// Of what uname says: "6.12.43+deb13-amd64". Nothing for what is no version.
std::optional<KernelVersion> parse_kernel_version(std::string_view release);

struct IpvsSetting {
  std::string name;  // below /proc/sys/net/ipv4/: "vs/conntrack"
  std::int64_t value = 0;
  bool serious = false;   // see UnwrittenSetting
  std::string otherwise;  // what is amiss without it
};
// In the order in which they are written. Pure.
std::vector<IpvsSetting> ipvs_settings(const config::Ipvs& wanted, KernelVersion kernel);

// Writes them; answers with what could not be set. `root` is put before /proc. The files below vs/
// are there once the module ip_vs is.
std::vector<UnwrittenSetting> set_ipvs_sysctls(
    const config::Ipvs& wanted, KernelVersion kernel, const std::string& root = "");

// Whether the kernel that runs has a scheduler of this name, which it may load for that. None: it
// did not say. Like kube-proxy it asks by a virtual server of that kind, at an address of nobody's
// (198.51.100.0/24 is for documents), which goes again at once.
std::optional<bool> has_ipvs_scheduler(const std::string& name);

// For the kernel that runs: has it load ip_vs, sets the timeouts (a failure is a warning), then the
// rest. Answers with nothing where there is no IPVS, of which preflight tells.
std::vector<UnwrittenSetting> set_up_ipvs(const config::Ipvs& wanted);

}  // namespace shunt::app
