#include "health/service_manager.h"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/unique_fd.h"

namespace shunt::health {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

// A manager that listens under a name.
class Manager {
 public:
  explicit Manager(const std::string& name) : fd_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') {
      address.sun_path[0] = '\0';
    }
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    REQUIRE(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  }
  std::string heard() const {
    char buffer[512];
    const ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    return got < 0 ? "nothing" : std::string(buffer, static_cast<std::size_t>(got));
  }

 private:
  UniqueFd fd_;
};

ServiceManager started_with(
    const std::string& socket, const char* period = nullptr, const char* pid = nullptr) {
  const auto set = [](const char* name, const char* value) {
    REQUIRE((value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1)) == 0);
  };
  set("NOTIFY_SOCKET", socket.empty() ? nullptr : socket.c_str());
  set("WATCHDOG_USEC", period);
  set("WATCHDOG_PID", pid);
  return ServiceManager::from_environment();
}

TEST_CASE("the manager hears of each state, under a file or an abstract name") {
  const std::string unique = "kube-shunt-test-" + std::to_string(::getpid());
  const std::string file = (std::filesystem::temp_directory_path() / unique).string();
  for (const std::string& name : {file, "@" + unique}) {
    const Manager manager(name);
    const ServiceManager to = started_with(name);
    CHECK(to.present());
    to.ready("10 Services");
    CHECK(manager.heard() == "READY=1\nSTATUS=10 Services");
    to.status("two\nlines");
    CHECK(manager.heard() == "STATUS=two lines");
    to.reloading();
    CHECK(manager.heard().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    to.stopping();
    CHECK(manager.heard() == "STOPPING=1");
    to.feed_watchdog();
    CHECK(manager.heard() == "WATCHDOG=1");
    CHECK(manager.heard() == "nothing");
  }
  std::filesystem::remove(file);
}

TEST_CASE("without a manager nothing is said and nothing fails") {
  for (const std::string& socket :
       {std::string(),
        std::string("vsock:2:1"),
        std::string("/"),
        std::string(200, '/'),
        std::string("/nonexistent/socket")}) {
    const ServiceManager nobody = started_with(socket, "1000000");
    nobody.ready("x");
    nobody.feed_watchdog();
    CHECK(nobody.present() == (socket == "/nonexistent/socket"));
    CHECK(nobody.watchdog().has_value() == nobody.present());
  }
  const Manager full("@kube-shunt-full-" + std::to_string(::getpid()));
  const ServiceManager to = started_with("@kube-shunt-full-" + std::to_string(::getpid()));
  for (int i = 0; i < 5000; ++i) {
    to.feed_watchdog();  // nobody reads, nobody waits
  }
}

TEST_CASE("the watchdog is for the process it names") {
  const std::string us = std::to_string(::getpid());
  CHECK(started_with("@x", "3000000", us.c_str()).watchdog() == microseconds(3'000'000));
  CHECK(started_with("@x", "3000000").watchdog() == microseconds(3'000'000));
  CHECK_FALSE(started_with("@x", "3000000", "1").watchdog());
  CHECK_FALSE(started_with("@x", "0").watchdog());
  CHECK_FALSE(started_with("@x", "soon").watchdog());
  CHECK_FALSE(started_with("@x").watchdog());
}

TEST_CASE("children do not inherit what is ours") {
  (void)started_with("@x", "3000000", "1");
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) {
    CHECK(std::getenv(name) == nullptr);
  }
}

TEST_CASE("a loop lives that has nothing to do, or turned a moment ago") {
  const Clock::time_point start{};
  CHECK(is_alive({start, false}, start + seconds(3600), seconds(10)));
  CHECK(is_alive({start, true}, start + seconds(9), seconds(10)));
  CHECK_FALSE(is_alive({start, true}, start + seconds(10), seconds(10)));
}

}  // namespace
}  // namespace shunt::health
