// bench_conntrack [ENTRIES]: what a large table of tracked UDP flows costs the daemon.
//
// Loads ENTRIES (500 000) flows of one Service into a node's table. Each round takes an endpoint
// away and gives it back, while a second Service is changed again and again: how long such a change
// takes to reach the kernel during a pass over the table, and how long without one; how long a pass
// takes; how much memory the daemon needed. The limit of the machine's table (nf_conntrack_max) is
// raised meanwhile.

#include <fmt/core.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "conntrack/tracked.h"
#include "daemon/world.h"
#include "netns/netns.h"

namespace {

using namespace shunt;
using namespace std::chrono_literals;
using backend::conntrack::Flow;
using nlohmann::json;
using Steady = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr unsigned kEndpoints = 5;
constexpr int kRounds = 5;
constexpr int kCalmChanges = 200;
constexpr char kLimit[] = "/proc/sys/net/netfilter/nf_conntrack_max";

class RaisedLimit {
 public:
  explicit RaisedLimit(unsigned long wanted) {
    std::ifstream(kLimit) >> before_;
    std::ofstream(kLimit) << std::max(before_, wanted);
  }
  RaisedLimit(const RaisedLimit&) = delete;
  RaisedLimit& operator=(const RaisedLimit&) = delete;
  ~RaisedLimit() { std::ofstream(kLimit) << before_; }

 private:
  unsigned long before_ = 0;
};

// Hears of each transaction of nf_tables in a namespace.
class Transactions {
 public:
  explicit Transactions(const lab::Netns& where) {
    socket_ = where.run([] {
      UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER));
      sockaddr_nl address{};
      address.nl_family = AF_NETLINK;
      address.nl_groups = 1U << (NFNLGRP_NFTABLES - 1);
      if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        lab::raise_errno("bind");
      }
      return fd;
    });
  }
  void forget_earlier_ones() const { (void)heard(); }
  void wait_for_one() const {
    const auto deadline = Steady::now() + 10s;
    while (Steady::now() < deadline) {
      pollfd polled{socket_.get(), POLLIN, 0};
      ::poll(&polled, 1, 1000);
      if (heard()) {
        return;
      }
    }
    throw std::runtime_error("the change did not reach the kernel");
  }

 private:
  bool heard() const {
    alignas(nlmsghdr) char buffer[65536];
    bool found = false;
    for (ssize_t got = 0; (got = ::recv(socket_.get(), buffer, sizeof buffer, 0)) > 0;) {
      auto left = static_cast<unsigned>(got);
      for (const auto* message = reinterpret_cast<const nlmsghdr*>(buffer); NLMSG_OK(message, left);
           message = NLMSG_NEXT(message, left)) {
        found = found || message->nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN);
      }
    }
    return found;
  }

  UniqueFd socket_;
};

net::SocketAddress endpoint(unsigned n) {
  return net::parse_socket_address("10.64.0." + std::to_string(n + 1) + ":8080").value();
}

// The flow number `n`, which leads to endpoint n % kEndpoints.
Flow flow(unsigned n) {
  net::SocketAddress client = net::parse_socket_address("198.18.0.0:1024").value();
  client.ip.bytes[2] = static_cast<std::uint8_t>(n / 40'000);
  client.port = net::Port{static_cast<std::uint16_t>(1024 + n % 40'000)};
  return {
      17,
      {client, net::parse_socket_address("10.112.0.10:80").value()},
      {endpoint(n % kEndpoints), client},
      true};
}

json udp_slice(bool without_first) {
  std::vector<std::string> ips;
  for (unsigned n = without_first ? 1 : 0; n < kEndpoints; ++n) {
    ips.push_back(net::to_string(endpoint(n).ip));
  }
  json out = test::slice("log", "IPv4", ips);
  out["ports"][0]["protocol"] = "UDP";
  return out;
}

unsigned long kilobytes(pid_t pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) {
      return std::stoul(line.substr(name.size() + 1));
    }
  }
  return 0;
}

double median(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Bench {
 public:
  explicit Bench(unsigned entries) : entries_(entries), transactions_(world_.lab().node()) {
    json service = test::service("log", {"10.112.0.10"});
    service["spec"]["ports"][0]["protocol"] = "UDP";
    world_.apply({service, udp_slice(false), test::service("web", {"10.112.0.11"})});
    change_other();
    world_.settle();
    world_.lab().node().run([] {
      std::ofstream(kLimit) << 4'000'000;  // where the limit is the namespace's own
    });
    fmt::print("loading {} entries\n", entries_);
    load([](unsigned) { return true; });
    std::ofstream("/proc/" + std::to_string(world_.daemon_pid()) + "/clear_refs") << 5;
    memory_before_ = kilobytes(world_.daemon_pid(), "VmRSS");
  }

  void run() {
    std::vector<double> calm;
    std::vector<double> busy;
    std::vector<double> passes;
    for (int round = 0; round < kRounds; ++round) {
      for (int i = 0; i < kCalmChanges; ++i) {
        calm.push_back(change_other());
        (void)counters();  // as below
      }
      const long before = counters().at("passes").get<long>();
      world_.apply({udp_slice(true)});
      std::this_thread::sleep_for(20ms);  // the pass is under way
      for (;;) {
        const double latency = change_other();
        if (counters().at("passes").get<long>() != before) {
          break;
        }
        busy.push_back(latency);
      }
      const json now = world_.settle(60s).at("conntrack").at("IPv4");
      passes.push_back(now.at("lastMicroseconds").get<double>() / 1e6);
      fmt::print(
          "round {}: {} flows looked at, {} removed so far, pass {:.3f} s\n",
          round + 1,
          now.at("scanned").get<long>(),
          now.at("deleted").get<long>(),
          passes.back());
      load([](unsigned n) { return n % kEndpoints == 0; });
      world_.apply({udp_slice(false)});
      world_.settle(60s);
    }
    const unsigned long peak = kilobytes(world_.daemon_pid(), "VmHWM");
    fmt::print("another Service's change reaches the kernel (median):\n");
    fmt::print("  without a pass  {:.2f} ms ({} changes)\n", median(calm) * 1e3, calm.size());
    fmt::print("  during a pass   {:.2f} ms ({} changes)\n", median(busy) * 1e3, busy.size());
    fmt::print("  ratio           {:.2f}\n", median(busy) / median(calm));
    fmt::print("a pass takes {:.3f} s (median)\n", median(passes));
    fmt::print(
        "memory of the daemon: {} KiB before, {} KiB at most, growth {:.1f} MB\n",
        memory_before_,
        peak,
        (static_cast<double>(peak) - static_cast<double>(memory_before_)) / 1e3);
  }

 private:
  template <typename Chosen>
  void load(const Chosen& chosen) {
    world_.lab().node().run([&] {
      test::TrackedFlows tracked;
      std::vector<Flow> some;
      for (unsigned n = 0; n < entries_; ++n) {
        if (chosen(n)) {
          some.push_back(flow(n));
        }
        if (some.size() == 10'000 || n + 1 == entries_) {
          tracked.insert(some);
          some.clear();
        }
      }
    });
  }
  // In seconds.
  double change_other() {
    flipped_ = !flipped_;
    const json slice = test::slice("web", "IPv4", {flipped_ ? "10.64.0.50" : "10.64.0.51"});
    transactions_.forget_earlier_ones();
    const auto started = Steady::now();
    world_.apply({slice});
    transactions_.wait_for_one();
    return Seconds(Steady::now() - started).count();
  }
  json counters() const { return world_.status().value().at("conntrack").at("IPv4"); }

  unsigned entries_;
  test::World world_;
  Transactions transactions_;
  bool flipped_ = false;
  unsigned long memory_before_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (::geteuid() != 0) {
    fmt::print("SKIP: needs root\n");
    return 0;
  }
  const unsigned entries =
      argc > 1 ? static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)) : 500'000;
  try {
    const RaisedLimit limit(entries * 2UL);
    Bench(entries).run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_conntrack: {}\n", error.what());
    return 1;
  }
  return 0;
}
