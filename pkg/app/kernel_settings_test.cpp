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
  REQUIRE(set_up_conntrack({}, machine.root).empty());
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
  REQUIRE(set_up_conntrack({}, machine.root).empty());
  for (const char* path :
       {Machine::kMax, Machine::kHashSize, Machine::kEstablished, Machine::kCloseWait}) {
    CHECK(machine.changed(path) == fs::file_time_type{});
  }
}

TEST_CASE("maxPerCore 0 leaves limit and buckets alone") {
  const Machine machine;
  config::Conntrack wanted;
  wanted.max_per_core = 0;
  REQUIRE(set_up_conntrack(wanted, machine.root).empty());
  CHECK(machine.get(Machine::kMax) == "1000");
  CHECK(machine.get(Machine::kHashSize) == "250");
  CHECK(machine.get(Machine::kCloseWait) == "3600");
}

TEST_CASE("a setting that cannot be written is named, and the others are written") {
  const Machine machine;
  const struct {
    const char* path;
    const char* how;
    std::int64_t wanted;
  } cases[] = {
      {Machine::kMax, "conntrack.maxPerCore", 131'072},
      {Machine::kHashSize, "conntrack.maxPerCore", 32'768},
      {Machine::kCloseWait, "conntrack.tcpCloseWaitTimeout", 3'600}};
  for (const auto& c : cases) {
    DYNAMIC_SECTION(c.path) {
      machine.remove(c.path);
      const auto unwritten = set_up_conntrack({}, machine.root);
      REQUIRE(unwritten.size() == 1);
      CHECK(unwritten[0].path == machine.root + c.path);
      CHECK_FALSE(unwritten[0].current);
      CHECK(unwritten[0].wanted == c.wanted);
      CHECK_FALSE(unwritten[0].error.empty());
      CHECK(unwritten[0].how.find(c.how) != std::string::npos);
      CHECK(unwritten[0].how.find("--init-only") != std::string::npos);
      CHECK(machine.begins(Machine::kEstablished, "86400"));

      const auto refused = refuse(unwritten);
      REQUIRE_FALSE(refused);
      CHECK(refused.error().what.find(c.path) != std::string::npos);
    }
  }
  CHECK(refuse({}));
}

TEST_CASE("a setting that can be read only has its current value in the warning") {
  const Machine machine;
  // Of a kernel file that is not writable, whoever we are.
  fs::remove(machine.root + Machine::kCloseWait);
  fs::create_symlink("/proc/sys/kernel/cap_last_cap", machine.root + Machine::kCloseWait);
  const auto unwritten = set_up_conntrack({}, machine.root);
  REQUIRE(unwritten.size() == 1);
  CHECK(unwritten[0].current.value_or(-1) > 0);
}

TEST_CASE("the score for lack of memory is written, and a failure is nobody's") {
  const Machine machine;
  machine.set("/proc/self/oom_score_adj", "0\n");
  set_oom_score_adj(-999, machine.root, std::chrono::milliseconds(0));
  CHECK(machine.get("/proc/self/oom_score_adj") == "-999");
  machine.remove("/proc/self/oom_score_adj");
  set_oom_score_adj(-999, machine.root, std::chrono::milliseconds(0));
}

TEST_CASE("without a list of CPUs those of this process count") {
  const Machine machine;
  machine.remove("/sys/devices/system/cpu/online");
  config::Conntrack wanted;
  wanted.min = 0;
  REQUIRE(set_up_conntrack(wanted, machine.root).empty());
  CHECK(std::stol(machine.get(Machine::kMax)) >= 32'768);
}

}  // namespace
}  // namespace shunt::app
