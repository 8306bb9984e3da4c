// bench_affinity [CLIENTS [SERVICES]]: what session affinity costs a connection.
//
// CLIENTS (10 000) addresses connect to SERVICES (50) Services with affinity and to as many
// without, in turn, so that both see the same machine: once when nobody is remembered, and again
// when everybody is. Prints the cost of a connect with and without, and their ratio; then takes an
// endpoint away and tells how long it took until no client of it was remembered.

#include <arpa/inet.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "daemon/world.h"

namespace {

using namespace shunt;
using namespace std::chrono_literals;
using nlohmann::json;
using Steady = std::chrono::steady_clock;
using Micros = std::chrono::duration<double, std::micro>;

constexpr unsigned kEndpoints = 3;
constexpr std::size_t kBatch = 500;  // connects of one kind before the other kind has its turn

sockaddr_in ipv4(std::uint32_t host, std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = htonl(host);
  return out;
}
sockaddr_in client_address(std::size_t n) {
  return ipv4(0x0ac80000U + 1 + static_cast<std::uint32_t>(n), 0);  // 10.200.0.0/16
}
// Services with affinity are 10.112.1.x, those without 10.112.2.x.
sockaddr_in service_address(std::size_t n, bool sticky) {
  return ipv4(0x0a700000U + (sticky ? 0x100U : 0x200U) + 1 + static_cast<std::uint32_t>(n), 80);
}

// Accepts on every address of the pods, and closes.
class Acceptor {
 public:
  explicit Acceptor(const lab::Netns& where) {
    listener_ = where.run([] {
      UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const sockaddr_in any = ipv4(INADDR_ANY, 8080);
      if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 ||
          ::listen(fd.get(), 4096) != 0) {
        throw std::runtime_error("cannot listen");
      }
      return fd;
    });
    thread_ = std::thread([this] {
      while (!stop_.load()) {
        pollfd ready{listener_.get(), POLLIN, 0};
        if (::poll(&ready, 1, 50) > 0) {
          const UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        }
      }
    });
  }
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  ~Acceptor() {
    stop_.store(true);
    thread_.join();
  }

 private:
  UniqueFd listener_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

Micros connect_once(const sockaddr_in& from, const sockaddr_in& to) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const linger reset{1, 0};
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);  // the connect tells
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0) {
    throw std::runtime_error("cannot bind");
  }
  const auto begin = Steady::now();
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    throw std::runtime_error("a connect failed");
  }
  return Steady::now() - begin;
}

double median(std::vector<double> values) {
  std::nth_element(
      values.begin(),
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
      values.end());
  return values[values.size() / 2];
}

// Every pair of client and Service once, in an order of its own, with and without in turn.
void measure(
    const test::World& world, const char* title, std::size_t clients, std::size_t services) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t c = 0; c < clients; ++c) {
    for (std::size_t s = 0; s < services; ++s) {
      pairs.emplace_back(c, s);
    }
  }
  std::shuffle(pairs.begin(), pairs.end(), std::mt19937(7));
  std::vector<double> costs[2];
  world.lab().outside().run([&] {
    for (std::size_t begin = 0; begin < pairs.size(); begin += kBatch) {
      for (const bool sticky : {true, false}) {
        for (std::size_t i = begin; i < std::min(begin + kBatch, pairs.size()); ++i) {
          const auto [client, service] = pairs[i];
          costs[sticky ? 1 : 0].push_back(
              connect_once(client_address(client), service_address(service, sticky)).count());
        }
      }
    }
  });
  const double with = median(costs[1]);
  const double without = median(costs[0]);
  fmt::print(
      "{}: {} connects each, median {:.1f} us with affinity, {:.1f} us without, ratio {:.3f}\n",
      title,
      pairs.size(),
      with,
      without,
      with / without);
}

json endpoints_of(const std::string& name, unsigned count) {
  std::vector<std::string> addresses;
  for (unsigned i = 1; i <= count; ++i) {
    addresses.push_back("10.64.0." + std::to_string(i));
  }
  return test::slice(name, "IPv4", addresses);
}

void run(std::size_t clients, std::size_t services) {
  test::World::Options options;
  options.lab.outside_hosts.push_back(net::parse_cidr("10.200.0.0/16").value());
  const test::World world(options);
  std::vector<json> objects;
  for (std::size_t s = 0; s < services; ++s) {
    const std::string number = std::to_string(s + 1);
    json sticky = test::service("sticky" + number, {"10.112.1." + number});
    sticky["spec"]["sessionAffinity"] = "ClientIP";
    objects.push_back(sticky);
    objects.push_back(test::service("plain" + number, {"10.112.2." + number}));
    objects.push_back(endpoints_of("sticky" + number, kEndpoints));
    objects.push_back(endpoints_of("plain" + number, kEndpoints));
  }
  world.apply(objects);
  world.settle();
  const Acceptor acceptor(world.lab().place("pods"));
  measure(world, "nobody remembered", clients, services);
  measure(world, "everybody remembered", clients, services);

  world.apply({endpoints_of("sticky1", kEndpoints - 1)});
  const auto begin = Steady::now();
  world.settle();
  fmt::print(
      "an endpoint goes, {} clients remembered: applied and forgotten after {:.1f} ms\n",
      clients,
      std::chrono::duration<double, std::milli>(Steady::now() - begin).count());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto number = [&](int index, std::size_t otherwise) {
      return argc > index ? std::strtoul(argv[index], nullptr, 10) : otherwise;
    };
    const std::size_t clients = std::clamp<std::size_t>(number(1, 10'000), 1, 60'000);
    const std::size_t services = std::clamp<std::size_t>(number(2, 50), 1, 200);
    run(clients, services);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_affinity: {}\n", error.what());
    return 1;
  }
}
