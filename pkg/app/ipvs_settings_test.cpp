#include "app/ipvs_settings.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "netlink/ipvs.h"

namespace shunt::app {
namespace {

namespace fs = std::filesystem;

// The value that is wanted of a setting; none: it is left alone.
std::optional<std::int64_t> value_of(const std::vector<IpvsSetting>& settings, const char* name) {
  const auto found = std::ranges::find(settings, name, &IpvsSetting::name);
  return found == settings.end() ? std::nullopt : std::optional(found->value);
}

TEST_CASE("the version of a kernel is read from its release, and nothing else is one") {
  const struct {
    const char* release;
    std::optional<KernelVersion> version;
  } cases[] = {
      {"6.12.43+deb13-amd64", KernelVersion{6, 12}},
      {"4.0", KernelVersion{4, 0}},
      {"5.10-rc1", KernelVersion{5, 10}},
      {"6", std::nullopt},
      {"6.", std::nullopt},
      {"", std::nullopt},
      {"v6.1", std::nullopt},
      {"-6.1", std::nullopt},
      {"99999999999.1", std::nullopt},
  };
  for (const auto& c : cases) {
    INFO(c.release);
    CHECK(parse_kernel_version(c.release) == c.version);
  }
}

TEST_CASE("conn_reuse_mode is set where the kernel's own value costs a second, and nowhere else") {
  const struct {
    KernelVersion kernel;
    std::optional<std::int64_t> value;
  } cases[] = {
      {{4, 0}, std::nullopt},
      {{4, 1}, 0},
      {{5, 8}, 0},
      {{5, 9}, std::nullopt},
      {{6, 12}, std::nullopt}};
  for (const auto& c : cases) {
    INFO(c.kernel.major << "." << c.kernel.minor);
    CHECK(value_of(ipvs_settings({}, c.kernel), "vs/conn_reuse_mode") == c.value);
  }
}

TEST_CASE("tracking and expiry are always set, ARP by strictARP") {
  for (const KernelVersion kernel : {KernelVersion{4, 0}, KernelVersion{6, 12}}) {
    const auto plain = ipvs_settings({}, kernel);
    CHECK(value_of(plain, "vs/conntrack") == 1);
    CHECK(value_of(plain, "vs/expire_nodest_conn") == 1);
    CHECK(value_of(plain, "vs/expire_quiescent_template") == 1);
    CHECK(value_of(plain, "ip_forward") == 1);
    CHECK_FALSE(value_of(plain, "conf/all/arp_ignore"));
    CHECK_FALSE(value_of(plain, "conf/all/arp_announce"));
    config::Ipvs wanted;
    wanted.strict_arp = true;
    CHECK(value_of(ipvs_settings(wanted, kernel), "conf/all/arp_ignore") == 1);
    CHECK(value_of(ipvs_settings(wanted, kernel), "conf/all/arp_announce") == 2);
  }
}

// A directory that looks like /proc with ip_vs loaded and nothing set.
class Machine {
 public:
  Machine() {
    char name[] = "/tmp/kube-shunt-ipvs-XXXXXX";
    root = ::mkdtemp(name);
    for (const char* setting :
         {"vs/conntrack",
          "vs/expire_nodest_conn",
          "vs/expire_quiescent_template",
          "ip_forward",
          "conf/all/arp_ignore",
          "conf/all/arp_announce"}) {
      set(setting, "0\n");
    }
    set("vs/conn_reuse_mode", "1\n");
  }
  ~Machine() { fs::remove_all(root); }
  std::string path(const std::string& setting) const {
    return root + "/proc/sys/net/ipv4/" + setting;
  }
  void set(const std::string& setting, const std::string& text) const {
    fs::create_directories(fs::path(path(setting)).parent_path());
    std::ofstream(path(setting)) << text;
  }
  std::string get(const std::string& setting) const {
    std::string text;
    std::getline(std::ifstream(path(setting)), text);
    return text;
  }
  std::string root;
};

TEST_CASE("settings are written where they differ") {
  const Machine machine;
  machine.set("ip_forward", "1\n");
  fs::last_write_time(machine.path("ip_forward"), fs::file_time_type{});
  config::Ipvs wanted;
  wanted.strict_arp = true;
  CHECK(set_ipvs_sysctls(wanted, {5, 4}, machine.root).empty());
  CHECK(machine.get("vs/conntrack") == "1");
  CHECK(machine.get("vs/conn_reuse_mode") == "0");
  CHECK(machine.get("vs/expire_nodest_conn") == "1");
  CHECK(machine.get("vs/expire_quiescent_template") == "1");
  CHECK(machine.get("conf/all/arp_ignore") == "1");
  CHECK(machine.get("conf/all/arp_announce") == "2");
  CHECK(fs::last_write_time(machine.path("ip_forward")) == fs::file_time_type{});
}

TEST_CASE("from 5.9 on conn_reuse_mode stays as it is, and ARP without strictARP") {
  const Machine machine;
  CHECK(set_ipvs_sysctls({}, {5, 9}, machine.root).empty());
  CHECK(machine.get("vs/conn_reuse_mode") == "1");
  CHECK(machine.get("conf/all/arp_ignore") == "0");
  CHECK(machine.get("vs/conntrack") == "1");
}

TEST_CASE("what cannot be written is named with the value and the way to it; the rest is written") {
  for (const char* setting : {"vs/conntrack", "vs/expire_nodest_conn", "ip_forward"}) {
    DYNAMIC_SECTION(setting) {
      const Machine machine;
      fs::remove(machine.path(setting));
      const auto unwritten = set_ipvs_sysctls({}, {6, 1}, machine.root);
      REQUIRE(unwritten.size() == 1);
      CHECK(unwritten[0].path == machine.path(setting));
      CHECK(unwritten[0].wanted == 1);
      CHECK_FALSE(unwritten[0].error.empty());
      std::string dotted = std::string("net.ipv4.") + setting + "=1";
      std::ranges::replace(dotted, '/', '.');
      CHECK(unwritten[0].how.find(dotted) != std::string::npos);
      CHECK(unwritten[0].how.find("--init-only") != std::string::npos);
      // Without tracking nothing is masqueraded; with anything else missing it works, if less well.
      CHECK(unwritten[0].serious == (std::string(setting) == "vs/conntrack"));
      CHECK(machine.get("vs/expire_quiescent_template") == "1");
    }
  }
}

TEST_CASE("the kernel is asked whether it has a scheduler, and keeps nothing of the question") {
  if (::geteuid() != 0) {
    SKIP("needs root, for a network namespace");
  }
  std::optional<bool> rr;
  std::optional<bool> none;
  std::size_t left = 0;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) == 0) {
      rr = has_ipvs_scheduler("rr");
      none = has_ipvs_scheduler("no-such-one");
      if (auto socket = netlink::ipvs::Socket::open()) {
        left = (*socket)->servers(net::Family::IPv4)->size();
      }
    }
  }).join();
  if (!rr) {
    SKIP("no IPVS here");
  }
  CHECK(rr == true);
  CHECK(none == false);
  CHECK(left == 0);
}

}  // namespace
}  // namespace shunt::app
