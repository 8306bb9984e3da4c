// A client that goes on sending datagrams from one socket, and what becomes of its tracked flow
// when endpoints come and go, with the daemon there, asleep or away.

#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <csignal>
#include <thread>

#include "conntrack/tracked.h"
#include "daemon/needs_root.h"
#include "daemon/world.h"
#include "netns/sockets.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using Steady = std::chrono::steady_clock;

constexpr char kService[] = "10.112.0.10:80";
constexpr auto kSoon = 1s;       // what we promise
constexpr auto kInterval = 5ms;  // between datagrams

json with_udp(json object) {
  json& ports = object.contains("spec") ? object["spec"]["ports"] : object["ports"];
  ports[0]["protocol"] = "UDP";
  return object;
}

json endpoints(const std::vector<std::string>& ips) { return with_udp(slice("log", "IPv4", ips)); }

// Receives, and never answers.
class Sink {
 public:
  Sink(const World& world, const std::string& ip) {
    socket_ = world.lab().place("pods").run(
        [&] { return lab::open_listener(net::Protocol::Udp, address(ip + ":8080")); });
  }
  // Datagrams since the last call.
  int received() const {
    char byte = 0;
    int count = 0;
    while (::recv(socket_.get(), &byte, 1, 0) >= 0) {
      ++count;
    }
    return count;
  }

 private:
  UniqueFd socket_;
};

struct Sender {
  explicit Sender(const World& world) {
    socket = world.lab().outside().run([] {
      UniqueFd fd = lab::open_socket(net::Protocol::Udp, net::Family::IPv4);
      lab::bind_to(fd.get(), address("198.51.100.7:40000"));
      const lab::RawAddress to = lab::to_raw(address(kService));
      REQUIRE(::connect(fd.get(), to.get(), to.length) == 0);
      return fd;
    });
  }
  bool refused() const { return ::send(socket.get(), "x", 1, 0) < 0 && errno == ECONNREFUSED; }
  // Sends on until `done`, or the time is up.
  template <typename Done>
  bool send_until(const Done& done, Steady::duration patience = kSoon) const {
    const auto deadline = Steady::now() + patience;
    do {
      (void)::send(socket.get(), "x", 1, 0);  // a refusal of an earlier one is told by refused()
      std::this_thread::sleep_for(kInterval);
      if (done()) {
        return true;
      }
    } while (Steady::now() < deadline);
    return false;
  }
  bool refused_soon() const {
    const auto deadline = Steady::now() + kSoon;
    while (Steady::now() < deadline) {
      if (refused()) {
        return true;
      }
      std::this_thread::sleep_for(kInterval);
    }
    return false;
  }

  UniqueFd socket;
};

// One UDP Service, one sender, three endpoints that may serve it.
struct Logs {
  Logs() {
    world.apply({with_udp(service("log", {"10.112.0.10"})), endpoints({"10.64.0.1"})});
    world.settle();
    REQUIRE(sender.send_until([&] { return one.received() > 0; }));
  }
  std::size_t flows_to(const std::string& ip) const {
    return world.lab().node().run([&] {
      const auto all = TrackedFlows().all(net::Family::IPv4);
      return static_cast<std::size_t>(std::ranges::count_if(all, [&](const auto& flow) {
        return flow.original.to == address(kService) && flow.reply.from == address(ip + ":8080");
      }));
    });
  }

  World world;
  Sink one{world, "10.64.0.1"};
  Sink two{world, "10.64.0.2"};
  Sink three{world, "10.64.0.3"};
  Sender sender{world};
};

TEST_CASE("a one-way sender is refused when the last endpoint goes, and served when one returns") {
  SHUNT_NEEDS_ROOT();
  Logs at;
  REQUIRE(at.flows_to("10.64.0.1") == 1);
  at.world.apply({endpoints({})});
  CHECK(at.sender.refused_soon());
  CHECK(at.flows_to("10.64.0.1") == 0);
  (void)at.one.received();
  CHECK(at.sender.refused_soon());
  CHECK(at.one.received() == 0);

  at.world.apply({endpoints({"10.64.0.2"})});
  CHECK(at.sender.send_until([&] { return at.two.received() > 0; }));
}

TEST_CASE("a replaced endpoint is left for the new one") {
  SHUNT_NEEDS_ROOT();
  Logs at;
  at.world.apply({endpoints({"10.64.0.2"})});
  CHECK(at.sender.send_until([&] { return at.two.received() > 0; }));
  (void)at.one.received();
  at.sender.send_until([] { return false; }, 50ms);
  CHECK(at.one.received() == 0);
  CHECK(at.flows_to("10.64.0.1") == 0);
  const json status = at.world.settle();
  CHECK(status.at("conntrack").at("IPv4").at("deleted") == 1);
}

TEST_CASE("an endpoint replaced while the daemon slept is left once it is awake") {
  SHUNT_NEEDS_ROOT();
  Logs at;
  REQUIRE(::kill(at.world.daemon_pid(), SIGSTOP) == 0);
  at.world.apply({endpoints({"10.64.0.2"})});
  at.sender.send_until([] { return false; }, 100ms);
  CHECK(at.one.received() > 0);
  REQUIRE(::kill(at.world.daemon_pid(), SIGCONT) == 0);
  CHECK(at.sender.send_until([&] { return at.two.received() > 0; }));
}

TEST_CASE("an endpoint replaced while the daemon was away is left after its start") {
  SHUNT_NEEDS_ROOT();
  Logs at;
  at.world.stop_daemon();
  at.world.apply({endpoints({"10.64.0.2"})});
  at.sender.send_until([] { return false; }, 100ms);
  CHECK(at.one.received() > 0);
  at.world.start_daemon();
  at.world.settle();
  CHECK(at.sender.send_until([&] { return at.two.received() > 0; }));
  CHECK(at.flows_to("10.64.0.1") == 0);
}

TEST_CASE("a flow made while no rules were there is redirected once they are") {
  SHUNT_NEEDS_ROOT();
  World::Options options;
  options.start_daemon = false;
  World world(options);
  const Sink one(world, "10.64.0.1");
  const Sender sender(world);
  world.apply({with_udp(service("log", {"10.112.0.10"})), endpoints({"10.64.0.1"})});
  sender.send_until([] { return false; }, 50ms);
  CHECK(one.received() == 0);
  world.start_daemon();
  CHECK(sender.send_until([&] { return one.received() > 0; }, 10s));
}

TEST_CASE("a sender stays with its endpoint through ten restarts") {
  SHUNT_NEEDS_ROOT();
  Logs at;
  at.world.apply({endpoints({"10.64.0.1", "10.64.0.2", "10.64.0.3"})});
  at.world.settle();
  for (int i = 0; i < 10; ++i) {
    if (i % 2 == 0) {
      at.world.stop_daemon();
    } else {
      at.world.kill_daemon();
    }
    at.sender.send_until([] { return false; }, 20ms);
    at.world.start_daemon();
    const json status = at.world.settle();
    CHECK(status.at("conntrack").at("IPv4").at("passes") == 1);
    CHECK(status.at("conntrack").at("IPv4").at("deleted") == 0);
    at.sender.send_until([] { return false; }, 20ms);
    CHECK(at.one.received() > 0);
  }
  CHECK(at.two.received() + at.three.received() == 0);
}

}  // namespace
}  // namespace shunt::test
