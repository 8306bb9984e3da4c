#include "app/ipvs_settings.h"

#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/log.h"
#include "netlink/ipvs.h"

namespace shunt::app {
namespace {

using log::kv;

constexpr char kSysctls[] = "/proc/sys/net/ipv4/";
// conn_reuse_mode 0 gives a connection that comes from a used source port to the endpoint that the
// port had. 1, the kernel's default, chooses anew, but up to 5.8 it drops the first packet when
// connections are tracked: a second's delay. From 5.9 on it does not, and 0 would send new
// connections to endpoints that go.
constexpr KernelVersion kHasReuseMode{4, 1};
constexpr KernelVersion kReuseModeIsRight{5, 9};

std::chrono::seconds in_range(std::chrono::seconds timeout) {
  constexpr std::chrono::seconds kMost{std::numeric_limits<std::int32_t>::max()};
  return std::min(timeout, kMost);  // which the kernel refuses
}

void set_timeouts(netlink::ipvs::Socket& socket, const config::Ipvs& wanted) {
  netlink::ipvs::Timeouts timeouts;
  timeouts.tcp = in_range(wanted.tcp_timeout);
  timeouts.tcp_fin = in_range(wanted.tcp_fin_timeout);
  timeouts.udp = in_range(wanted.udp_timeout);
  if (timeouts.tcp.count() == 0 && timeouts.tcp_fin.count() == 0 && timeouts.udp.count() == 0) {
    return;
  }
  if (auto done = socket.set_timeouts(timeouts); !done) {
    log::warn(
        "the timeouts of IPVS cannot be set, they stay as they are",
        {kv("tcp_seconds", timeouts.tcp.count()),
         kv("tcp_fin_seconds", timeouts.tcp_fin.count()),
         kv("udp_seconds", timeouts.udp.count()),
         kv("error", done.error().what)});
  }
}

KernelVersion running_kernel() {
  utsname names{};
  (void)::uname(&names);  // fails only for a wrong pointer
  // An unreadable version is rather a new one than one of 2015.
  return parse_kernel_version(names.release).value_or(KernelVersion{99, 0});
}

std::string with_dots(std::string name) {
  std::ranges::replace(name, '/', '.');
  return name;
}

}  // namespace

std::optional<KernelVersion> parse_kernel_version(std::string_view release) {
  KernelVersion out;
  const char* const end = release.data() + release.size();
  const auto major = std::from_chars(release.data(), end, out.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') {
    return std::nullopt;
  }
  if (std::from_chars(major.ptr + 1, end, out.minor).ec != std::errc()) {
    return std::nullopt;
  }
  return out;
}

std::vector<IpvsSetting> ipvs_settings(const config::Ipvs& wanted, KernelVersion kernel) {
  std::vector<IpvsSetting> out{
      {"vs/conntrack", 1, true, "nothing that IPVS balances is masqueraded"},
      {"vs/expire_nodest_conn",
       1,
       false,
       "connections to endpoints that went hang until they expire"},
      {"vs/expire_quiescent_template",
       1,
       false,
       "clients with session affinity stay with endpoints that are going"},
      {"ip_forward", 1, false, "packets reach no endpoint in another network namespace"}};
  if (kernel >= kHasReuseMode && kernel < kReuseModeIsRight) {
    out.insert(
        out.begin() + 1,
        {"vs/conn_reuse_mode",
         0,
         false,
         "a new connection from a port that was used a short time ago waits for a second"});
  }
  if (wanted.strict_arp) {
    out.push_back({"conf/all/arp_ignore", 1, false, "ipvs.strictARP is not in effect"});
    out.push_back({"conf/all/arp_announce", 2, false, "ipvs.strictARP is not in effect"});
  }
  return out;
}

std::vector<UnwrittenSetting> set_ipvs_sysctls(
    const config::Ipvs& wanted, KernelVersion kernel, const std::string& root) {
  std::vector<UnwrittenSetting> unwritten;
  if (kernel < kHasReuseMode) {
    log::error(
        "this kernel is older than 4.1: connections of IPVS from used source ports go wrong",
        {kv("kernel", std::to_string(kernel.major) + "." + std::to_string(kernel.minor))});
  }
  for (const IpvsSetting& setting : ipvs_settings(wanted, kernel)) {
    const std::size_t before = unwritten.size();
    write_setting(
        unwritten,
        root + kSysctls + setting.name,
        setting.value,
        "set net.ipv4." + with_dots(setting.name) + "=" + std::to_string(setting.value) +
            " on the host, with ip_vs loaded; without it " + setting.otherwise);
    if (unwritten.size() > before) {
      unwritten.back().serious = setting.serious;
    }
  }
  return unwritten;
}

std::optional<bool> has_ipvs_scheduler(const std::string& name) {
  auto socket = netlink::ipvs::Socket::open();
  if (!socket) {
    return std::nullopt;
  }
  netlink::ipvs::Server probe;
  probe.key = {*net::parse_socket_address("198.51.100.0:20000"), net::Protocol::Tcp};
  probe.scheduler = name;
  netlink::ipvs::Commands commands;
  commands.add(probe);
  std::vector<netlink::ipvs::Refused> refused;
  if (!(*socket)->send(commands, refused)) {
    return std::nullopt;
  }
  if (!refused.empty()) {
    return refused.front().error.code == Errc::Unsupported ? std::optional(false) : std::nullopt;
  }
  commands.clear();
  commands.remove(probe.key);
  (void)(*socket)->send(commands, refused);  // the back end removes what is nobody's
  return true;
}

std::vector<UnwrittenSetting> set_up_ipvs(const config::Ipvs& wanted) {
  auto socket = netlink::ipvs::Socket::open();
  if (!socket) {
    log::debug("no settings of IPVS", {kv("error", socket.error().what)});
    return {};
  }
  set_timeouts(**socket, wanted);
  return set_ipvs_sysctls(wanted, running_kernel());
}

}  // namespace shunt::app
