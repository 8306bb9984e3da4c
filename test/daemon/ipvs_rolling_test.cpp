// A Service whose every pod is replaced, one by one, while a client connects again and again from
// a thousand source ports. What IPVS is known for to go wrong here: a port that is used again meets
// the memory of its last connection, to a pod that is gone, and the packet is lost.

#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "daemon/ipvs_world.h"
#include "daemon/load.h"
#include "netns/sockets.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr int kPods = 10;
constexpr int kPorts = 1'000;
constexpr int kWorkers = 4;
constexpr std::uint16_t kFirstPort = 20'000;
constexpr timeval kPatience{.tv_sec = 5, .tv_usec = 0};

struct Tally {
  std::map<std::string, int> answered;  // by server
  int refused = 0;
  int timed_out = 0;
  int port_busy = 0;  // our own side: the port has not been given back yet
  int other = 0;

  int connections() const {
    int sum = 0;
    for (const auto& [name, count] : answered) {
      sum += count;
    }
    return sum;
  }
  void add(const Tally& more) {
    for (const auto& [name, count] : more.answered) {
      answered[name] += count;
    }
    refused += more.refused;
    timed_out += more.timed_out;
    port_busy += more.port_busy;
    other += more.other;
  }
};

void count_failure(int error, Tally& tally) {
  if (error == EADDRNOTAVAIL || error == EADDRINUSE) {
    ++tally.port_busy;
  } else if (error == ETIMEDOUT || error == EAGAIN || error == EINPROGRESS) {
    ++tally.timed_out;
  } else if (error == ECONNREFUSED || error == ECONNRESET || error == EHOSTUNREACH) {
    ++tally.refused;
  } else {
    ++tally.other;
  }
}

// Connects from this port, asks, reads the answer to its end and closes like a good client: first.
void converse(const net::SocketAddress& from, const net::SocketAddress& to, Tally& tally) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  const lab::RawAddress own = lab::to_raw(from);
  const lab::RawAddress server = lab::to_raw(to);
  if (::bind(fd.get(), own.get(), own.length) != 0 ||
      ::connect(fd.get(), server.get(), server.length) != 0 ||
      ::send(fd.get(), "?!", 2, MSG_NOSIGNAL) != 2) {
    count_failure(errno, tally);
    return;
  }
  std::string answer;
  std::array<char, 256> buffer{};
  while (!answer.ends_with("?!")) {
    const ssize_t n = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (n <= 0) {
      count_failure(n == 0 ? ECONNRESET : errno, tally);
      return;
    }
    answer.append(buffer.data(), static_cast<std::size_t>(n));
  }
  ++tally.answered[answer.substr(0, answer.find(' '))];
}

// The thousand ports, used one after the other, round and round, by a few threads.
class PortClient {
 public:
  PortClient(const lab::Netns& where, const char* ip, const char* to)
      : where_(&where), ip_(net::parse_ip(ip).value()), to_(address(to)) {
    // A port that has just been closed may be used again as soon as a second has passed.
    where.run([] { lab::write_sysctl("net.ipv4.tcp_tw_reuse", "1"); });
    for (int worker = 0; worker < kWorkers; ++worker) {
      threads_.emplace_back([this, worker](const std::stop_token& stop) { work(worker, stop); });
    }
  }

  int rounds() const { return asked_ / kPorts; }

  Tally stop() {
    for (std::jthread& thread : threads_) {
      thread.request_stop();
    }
    threads_.clear();
    return tally_;
  }

 private:
  void work(int worker, const std::stop_token& stop) {
    where_->enter();
    Tally tally;
    for (int i = worker; !stop.stop_requested(); i = (i + kWorkers) % kPorts) {
      const auto begun = std::chrono::steady_clock::now();
      converse({ip_, net::Port{static_cast<std::uint16_t>(kFirstPort + i)}}, to_, tally);
      ++asked_;
      // So that no port comes round before two seconds have passed.
      std::this_thread::sleep_until(begun + kWorkers * 2000ms / kPorts);
    }
    const std::lock_guard lock(mutex_);
    tally_.add(tally);
  }

  const lab::Netns* where_;
  net::IpAddress ip_;
  net::SocketAddress to_;
  std::atomic<int> asked_{0};
  std::mutex mutex_;
  Tally tally_;
  std::vector<std::jthread> threads_;
};

std::string old_pod(int i) { return "10.64.0." + std::to_string(10 + i); }
std::string new_pod(int i) { return "10.64.0." + std::to_string(110 + i); }

struct Deployment {
  explicit Deployment(const World& world) : world_(&world) {
    for (int i = 0; i < kPods; ++i) {
      start(old_pod(i));
    }
    apply();
  }

  // The new pod is ready before the old one is told to end; which serves a while longer, and is
  // then gone without a word.
  void replace(int i) {
    start(new_pod(i));
    apply();
    endpoint(old_pod(i))["conditions"] = {
        {"ready", false}, {"serving", true}, {"terminating", true}};
    apply();
    std::this_thread::sleep_for(300ms);  // what it was asked before is answered
    std::erase_if(endpoints_, [&](const json& e) { return e["addresses"][0] == old_pod(i); });
    apply();
    servers_.erase(old_pod(i));
    world_->lab().ip_batch("pods", "route add blackhole " + old_pod(i) + "/32 table local\n");
  }

 private:
  void start(const std::string& ip) {
    servers_[ip] = std::make_unique<lab::EchoServer>(
        world_->lab().place("pods"), net::Protocol::Tcp, address((ip + ":8080").c_str()), ip);
    endpoints_.push_back(
        {{"addresses", {ip}},
         {"conditions", {{"ready", true}, {"serving", true}, {"terminating", false}}},
         {"nodeName", "edge-a"}});
  }
  json& endpoint(const std::string& ip) {
    return *std::ranges::find_if(
        endpoints_, [&](const json& e) { return e["addresses"][0] == ip; });
  }
  void apply() const {
    json object = slice("web", "IPv4", {});
    object["endpoints"] = endpoints_;
    world_->apply({object});
    world_->settle(60s);
  }

  const World* world_;
  std::map<std::string, std::unique_ptr<lab::EchoServer>> servers_;
  std::vector<json> endpoints_;
};

std::string to_text(const char* who, const Tally& tally) {
  return std::string(who) + ": " + std::to_string(tally.connections()) + " answered, " +
         std::to_string(tally.timed_out) + " timed out, " + std::to_string(tally.refused) +
         " refused, " + std::to_string(tally.other) + " failed otherwise, " +
         std::to_string(tally.port_busy) + " times the port was still in use\n";
}

// New pods with weight 1; of the old ones only what had connections to end a moment ago, with
// weight 0.
void check_listing(const std::string& listing) {
  std::istringstream lines(listing);
  std::map<std::string, std::string> weights;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string arrow;
    std::string real;
    std::string forward;
    std::string weight;
    int active = 0;
    int inactive = 0;
    if (words >> arrow >> real >> forward >> weight >> active >> inactive && arrow == "->") {
      INFO(line);
      weights[real] = weight;
      CHECK(forward == "Masq");
      CHECK((weight == "1" || weight == "0"));
    }
  }
  for (int i = 0; i < kPods; ++i) {
    CHECK(weights[new_pod(i) + ":8080"] == "1");
    CHECK(weights[old_pod(i) + ":8080"] != "1");
  }
}

TEST_CASE("every pod is replaced under a thousand source ports: nobody waits in vain", "[ipvs]") {
  SHUNT_NEEDS_IPVS();
  World world(configured_by_file());
  world.apply({service("web", {"10.112.0.10"})});
  start_in_mode(world, "ipvs");
  Deployment deployment(world);

  PortClient outsider(world.lab().outside(), "198.51.100.7", "10.112.0.10:80");
  PortClient node(world.lab().node(), "10.80.0.10", "10.112.0.10:80");
  const auto have_gone_round = [&](int rounds) {
    const auto deadline = std::chrono::steady_clock::now() + 120s;
    while (std::min(outsider.rounds(), node.rounds()) < rounds &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(10ms);
    }
    return std::min(outsider.rounds(), node.rounds()) >= rounds;
  };
  REQUIRE(have_gone_round(1));  // each port has been used, so IPVS remembers each
  for (int i = 0; i < kPods; ++i) {
    deployment.replace(i);
  }
  // Once more with none of the old ones there.
  REQUIRE(have_gone_round(std::max(outsider.rounds(), node.rounds()) + 2));
  const Tally of_outsider = outsider.stop();
  const Tally of_node = node.stop();

  std::fputs(to_text("outsider", of_outsider).c_str(), stdout);
  std::fputs(to_text("node", of_node).c_str(), stdout);
  for (const Tally& tally : {of_outsider, of_node}) {
    INFO(to_text("client", tally));
    CHECK(tally.timed_out == 0);
    CHECK(tally.refused == 0);
    CHECK(tally.other == 0);
    CHECK(tally.port_busy < tally.connections() / 10);
    CHECK(tally.connections() > kPorts);
    for (int i = 0; i < kPods; ++i) {
      INFO(new_pod(i));
      CHECK(tally.answered.contains(new_pod(i)));
    }
  }
  const std::string listing = world.on_node("ipvsadm -Ln");
  std::puts(listing.c_str());
  check_listing(listing);
}

}  // namespace
}  // namespace shunt::test
