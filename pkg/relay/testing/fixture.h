// For the relay's tests: real sockets in a network namespace of the test program's own, where the
// endpoints are addresses of the loopback device; servers with names, clients, and a relay with the
// plans it is told.
#pragma once

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "relay/relay.h"
#include "relay/sockets.h"

namespace shunt::relay::testing {

using desired::FrontendKey;
using net::Family;
using net::Protocol;
using std::chrono::milliseconds;

constexpr net::Port kPort{30080};

inline net::SocketAddress address(const std::string& text) {
  return *net::parse_socket_address(text);
}

// Once, before any thread: those of the relay and the servers are in the namespace as well.
inline bool in_own_network() {
  static const bool done =
      ::geteuid() == 0 && ::unshare(CLONE_NEWNET) == 0 &&
      std::system(
          "ip link set lo up && for n in 1 2 3; do"
          " ip addr add 10.64.0.$n/32 dev lo && ip addr add fd64::$n/128 dev lo nodad;"
          " done") == 0;
  return done;
}

#define NEEDS_OWN_NETWORK()                                     \
  if (!in_own_network()) {                                      \
    SKIP("needs root, for a network namespace with addresses"); \
  }

inline bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

inline bool readable(int fd, int timeout_ms = 5000) {
  pollfd wait{fd, POLLIN, 0};
  return ::poll(&wait, 1, timeout_ms) == 1;
}

// What comes next, "" at the end, "reset" on an error, "silence" when nothing comes.
inline std::string next_from(int fd, int timeout_ms = 5000) {
  if (!readable(fd, timeout_ms)) {
    return "silence";
  }
  char buffer[4096];
  const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
  return got < 0 ? "reset" : std::string(buffer, static_cast<std::size_t>(got));
}

inline std::string all_from(int fd) {
  std::string all;
  for (;;) {
    const std::string part = next_from(fd);
    all += part;
    if (part.empty() || part == "silence" || part == "reset") {
      return all;
    }
  }
}

inline void say(int fd, const std::string& text) {
  (void)::send(fd, text.data(), text.size(), MSG_NOSIGNAL);  // the answer, or none, is judged
}

// TCP: says its name, echoes until the client's end, says "bye". UDP: answers with its name and the
// port that the datagram came from.
class Server {
 public:
  Server(const std::string& where, Protocol protocol, std::string name)
      : protocol_(protocol), name_(std::move(name)), socket_(*listen_on(address(where), protocol)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    stop_ = true;
    thread_.join();
    for (std::thread& conversation : conversations_) {
      conversation.join();
    }
  }

 private:
  void serve() {
    while (!stop_) {
      if (!readable(socket_.get(), 10)) {
        continue;
      }
      if (protocol_ == Protocol::Udp) {
        char buffer[2048];
        net::SocketAddress from;
        if (receive_from(socket_.get(), buffer, from)) {
          const std::string answer = name_ + ":" + std::to_string(net::number(from.port));
          send_to(socket_.get(), std::span(answer.data(), answer.size()), from);
        }
      } else if (auto client = accept_from(socket_.get())) {
        conversations_.emplace_back(
            [this, fd = std::make_shared<UniqueFd>(std::move(*client))] { talk(fd->get()); });
      }
    }
  }
  void talk(int fd) {
    say(fd, name_);
    char buffer[4096];
    while (!stop_) {
      if (!readable(fd, 10)) {
        continue;
      }
      const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
      if (got <= 0) {
        break;
      }
      say(fd, std::string(buffer, static_cast<std::size_t>(got)));
    }
    say(fd, "bye");
  }

  Protocol protocol_;
  std::string name_;
  UniqueFd socket_;
  std::atomic<bool> stop_ = false;
  std::list<std::thread> conversations_;
  std::thread thread_;
};

// The relay, and the plans it is told.
class Fixture {
 public:
  explicit Fixture(const Limits& limits = {}) : relay_(*Relay::start(limits, seeded_random())) {}

  void set(
      Protocol protocol,
      const std::vector<std::string>& endpoints,
      std::optional<std::chrono::seconds> affinity = std::nullopt,
      Family family = Family::IPv4) {
    auto plan = std::make_shared<desired::FrontendPlan>();
    plan->service = "ns/web:p";
    desired::EndpointList list;
    for (const std::string& text : endpoints) {
      list.push_back(address(text));
    }
    if (!list.empty()) {
      plan->endpoints = std::make_shared<const desired::EndpointList>(std::move(list));
    }
    if (affinity) {
      plan->affinity.emplace().timeout = *affinity;
    }
    claim(family, {{desired::node_port_key(family, protocol, kPort), std::move(plan)}});
  }
  void remove(Family family = Family::IPv4) { claim(family, {}); }

 private:
  void claim(Family family, std::vector<desired::Claim> claims) {
    std::vector<FrontendKey> touched;
    std::vector<desired::Conflict> conflicts;
    wanted_[family].set_service({"ns", "web"}, {}, std::move(claims), touched, conflicts);
    relay_->update(family, wanted_[family], touched);
  }

  std::map<Family, desired::DesiredState> wanted_;
  std::unique_ptr<Relay> relay_;
};

inline UniqueFd client(Protocol protocol, Family family = Family::IPv4) {
  auto fd = connect_to({loopback(family), kPort}, protocol);
  return fd ? std::move(*fd) : UniqueFd();
}

// A lost datagram is not waited for long: whoever needs an answer asks again.
inline std::string ask(const UniqueFd& fd) {
  say(fd.get(), "?");
  return next_from(fd.get(), 500);
}

// Who answers a new connection; "refused" when nobody listens.
inline std::string tcp_answer(Family family = Family::IPv4) {
  const UniqueFd fd = client(Protocol::Tcp, family);
  const std::string answer = fd ? next_from(fd.get()) : "reset";
  return answer == "reset" ? "refused" : answer;
}

}  // namespace shunt::relay::testing
