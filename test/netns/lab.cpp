#include "netns/lab.h"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is POSIX, not in <csignal>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <thread>

#include "netns/lab_script.h"
#include "netns/process.h"

namespace shunt::lab {
namespace {

net::IpAddress ip(std::string_view text) { return net::parse_ip(text).value(); }
net::Cidr cidr(std::string_view text) { return net::parse_cidr(text).value(); }

std::string next_owner() {
  static std::atomic<int> count{0};
  return std::to_string(::getpid()) + "-" + std::to_string(count++);
}

// Everywhere: no waiting for duplicate address detection, no neighbour discovery, no reverse path
// filter, every ICMP error at once.
void common_sysctls() {
  for (const char* const scope : {"all", "default"}) {
    const std::string ipv4 = std::string("net.ipv4.conf.") + scope + ".";
    const std::string ipv6 = std::string("net.ipv6.conf.") + scope + ".";
    write_sysctl(ipv4 + "rp_filter", "0");
    write_sysctl(ipv4 + "send_redirects", "0");
    write_sysctl(ipv4 + "accept_redirects", "0");
    write_sysctl(ipv6 + "accept_dad", "0");
    write_sysctl(ipv6 + "accept_ra", "0");
    write_sysctl(ipv6 + "accept_redirects", "0");
  }
  write_sysctl("net.ipv6.conf.default.addr_gen_mode", "1");  // no link-local address
  write_sysctl("net.ipv4.icmp_ratemask", "0");
  write_sysctl("net.ipv6.icmp.ratemask", "\n");
  write_sysctl("net.ipv4.ip_local_port_range", "10000 65000");
}

void node_sysctls(bool speaks_ipv6) {
  common_sysctls();
  write_sysctl("net.ipv4.ip_forward", "1");
  write_sysctl("net.ipv6.conf.all.forwarding", "1");
  if (!speaks_ipv6) {
    // "all" says so to whoever asks; interfaces made from now on inherit "default".
    write_sysctl("net.ipv6.conf.all.disable_ipv6", "1");
    write_sysctl("net.ipv6.conf.default.disable_ipv6", "0");
    write_sysctl("net.ipv6.conf.lo.disable_ipv6", "0");
  }
}

// For places that hold whole ranges: bind to any address of theirs, and take packets whose source
// is one of theirs as well (a connection that the node sent back).
void holder_sysctls() {
  common_sysctls();
  write_sysctl("net.ipv4.conf.all.accept_local", "1");
  write_sysctl("net.ipv6.ip_nonlocal_bind", "1");
}

std::set<pid_t> processes_in(const std::string& name) {
  std::set<pid_t> pids;
  struct stat wanted {};
  if (::stat(("/run/netns/" + name).c_str(), &wanted) != 0) {
    return pids;
  }
  std::error_code ignored;  // processes come and go while we look
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string number = entry.path().filename().string();
    pid_t pid = 0;
    if (std::from_chars(number.data(), number.data() + number.size(), pid).ec != std::errc()) {
      continue;
    }
    struct stat found {};
    if (::stat((entry.path() / "ns/net").c_str(), &found) == 0 && found.st_ino == wanted.st_ino &&
        found.st_dev == wanted.st_dev && pid != ::getpid()) {
      pids.insert(pid);
    }
  }
  return pids;
}

}  // namespace

LabSpec default_lab_spec() {
  LabSpec spec;
  spec.node_addresses = {ip("10.80.0.10"), ip("10.80.1.10"), ip("fd80::10"), ip("fd80:1::10")};
  spec.node_pod_side = {ip("10.64.0.254"), ip("fd64::fe")};
  for (const char* const range :
       {"10.64.1.0/24",
        "10.64.2.0/24",
        "10.64.3.0/24",
        "10.80.0.11/32",
        "10.80.0.12/32",
        "10.80.0.13/32",
        "198.51.100.0/24",
        "fd64:0:0:1::/64",
        "fd64:0:0:2::/64",
        "fd64:0:0:3::/64",
        "fd80::11/128",
        "fd80::12/128",
        "fd80::13/128",
        "2001:db8:e::/64"}) {
    spec.outside_hosts.push_back(cidr(range));
  }
  return spec;
}

Lab::Lab(LabSpec spec) : spec_(std::move(spec)) {
  static const bool reaped = (reap_namespaces(), true);
  (void)reaped;  // once a process is enough
  remove_namespaces_on_signals();
  if (spec_.owner.empty()) {
    spec_.owner = next_owner();
  }
  try {
    for (const std::string& name : places_of(spec_)) {
      const bool node = name == "node";
      places_.emplace(name, Netns::create(namespace_name(spec_.owner, name), [&] {
                        node ? node_sysctls(spec_.node_speaks_ipv6) : holder_sysctls();
                      }));
    }
    // Links are made from inside the node: a process less, which is a third of a second where the
    // machine is emulated.
    for (const PlaceScript& script : place_scripts(spec_)) {
      ip_batch(
          script.place, script.place == "node" ? link_script(spec_) + script.text : script.text);
    }
  } catch (...) {
    for (const auto& [name, netns] : places_) {
      remove_namespace(netns.name());
    }
    throw;
  }
}

Lab::~Lab() {
  if (keep_) {
    return;
  }
  for (const auto& [name, netns] : places_) {
    remove_namespace(netns.name());
  }
}

const Netns& Lab::place(std::string_view name) const {
  const auto found = places_.find(name);
  if (found == places_.end()) {
    throw std::out_of_range("the lab has no place " + std::string(name));
  }
  return found->second;
}

void Lab::ip_batch(std::string_view place_name, const std::string& script) const {
  run_program({"ip", "-n", place(place_name).name(), "-batch", "-"}, script);
}

void Lab::add_node_address(const net::IpAddress& ip) const {
  const bool ipv6 = ip.family == net::Family::IPv6;
  ip_batch(
      "node",
      "addr replace " + net::to_string(ip) +
          (ipv6 ? "/128 dev uplink nodad\n" : "/32 dev uplink\n"));
}

void Lab::remove_node_address(const net::IpAddress& ip) const {
  const bool ipv6 = ip.family == net::Family::IPv6;
  ip_batch("node", "addr del " + net::to_string(ip) + (ipv6 ? "/128" : "/32") + " dev uplink\n");
}

void remove_lab(const std::string& owner) {
  const std::vector<std::string> names = namespaces_of(owner);
  for (const int signal_number : {SIGTERM, SIGKILL}) {
    for (int tries = 0; tries < 40; ++tries) {
      std::set<pid_t> left;
      for (const std::string& name : names) {
        left.merge(processes_in(name));
      }
      if (left.empty()) {
        break;
      }
      for (const pid_t pid : left) {
        ::kill(pid, signal_number);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  for (const std::string& name : names) {
    remove_namespace(name);
  }
}

}  // namespace shunt::lab
