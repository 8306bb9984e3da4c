#include "app/kernel_settings.h"

#include <stdlib.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>

namespace shunt::app {
namespace {

namespace fs = std::filesystem;

// A directory that looks like the /proc and /sys of a machine with four CPUs.
class Machine {
 public:
  Machine() {
    char name[] = "/tmp/kube-shunt-machine-XXXXXX";
    root = ::mkdtemp(name);
    set("/sys/devices/system/cpu/online", "0-3\n");
    set(kMax, "1000\n");
    set(kHashSize, "250\n");
    set(kEstablished, "432000\n");
    set(kCloseWait, "60\n");
  }
  ~Machine() { fs::remove_all(root); }
  void set(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  void remove(const std::string& path) const { fs::remove(root + path); }
  std::string get(const std::string& path) const {
    std::string text;
    std::getline(std::ifstream(root + path), text);
    return text;
  }
  // A file that is written in place of a longer text keeps the rest; a sysctl does not.
  bool begins(const std::string& path, const std::string& text) const {
    return get(path).starts_with(text);
  }
  fs::file_time_type changed(const std::string& path) const {
    return fs::last_write_time(root + path);
  }

  static constexpr char kMax[] = "/proc/sys/net/netfilter/nf_conntrack_max";
  static constexpr char kEstablished[] =
      "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established";
  static constexpr char kCloseWait[] =
      "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close_wait";
  static constexpr char kHashSize[] = "/sys/module/nf_conntrack/parameters/hashsize";
  std::string root;
};

TEST_CASE("the defaults are written: the limit by the CPUs of the machine, then its buckets") {
  const Machine machine;
  REQUIRE(set_up_conntrack({}, machine.root));
  CHECK(machine.get(Machine::kMax) == "131072");
  CHECK(machine.get(Machine::kHashSize) == "32768");
  CHECK(machine.begins(Machine::kEstablished, "86400"));
  CHECK(machine.get(Machine::kCloseWait) == "3600");
}

TEST_CASE("what the kernel has already is not written") {
  const Machine machine;
  machine.set(Machine::kMax, "131072\n");
  machine.set(Machine::kHashSize, "65536\n");
  machine.set(Machine::kEstablished, "86400\n");
  machine.set(Machine::kCloseWait, "3600\n");
  for (const char* path :
       {Machine::kMax, Machine::kHashSize, Machine::kEstablished, Machine::kCloseWait}) {
    fs::last_write_time(machine.root + path, fs::file_time_type{});
  }
  REQUIRE(set_up_conntrack({}, machine.root));
  for (const char* path :
       {Machine::kMax, Machine::kHashSize, Machine::kEstablished, Machine::kCloseWait}) {
    CHECK(machine.changed(path) == fs::file_time_type{});
  }
}

TEST_CASE("maxPerCore 0 leaves limit and buckets alone") {
  const Machine machine;
  config::Conntrack wanted;
  wanted.max_per_core = 0;
  REQUIRE(set_up_conntrack(wanted, machine.root));
  CHECK(machine.get(Machine::kMax) == "1000");
  CHECK(machine.get(Machine::kHashSize) == "250");
  CHECK(machine.get(Machine::kCloseWait) == "3600");
}

TEST_CASE("a setting that cannot be written is an error with its name") {
  const Machine machine;
  SECTION("the limit") {
    machine.remove(Machine::kMax);
    const auto outcome = set_up_conntrack({}, machine.root);
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().what.find("nf_conntrack_max") != std::string::npos);
    CHECK(outcome.error().what.find("conntrack.maxPerCore") != std::string::npos);
  }
  SECTION("the buckets") {
    machine.remove(Machine::kHashSize);
    CHECK(set_up_conntrack({}, machine.root).error().what.find("hashsize") != std::string::npos);
  }
  SECTION("a timeout") {
    machine.remove(Machine::kCloseWait);
    CHECK(
        set_up_conntrack({}, machine.root).error().what.find("timeout_close_wait") !=
        std::string::npos);
  }
}

TEST_CASE("without a list of CPUs those of this process count") {
  const Machine machine;
  machine.remove("/sys/devices/system/cpu/online");
  config::Conntrack wanted;
  wanted.min = 0;
  REQUIRE(set_up_conntrack(wanted, machine.root));
  CHECK(std::stol(machine.get(Machine::kMax)) >= 32'768);
}

}  // namespace
}  // namespace shunt::app
