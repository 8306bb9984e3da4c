// New connections spread evenly: a chi-square test accepts 10 000 connects for every K.

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <map>
#include <thread>

#include "base/unique_fd.h"
#include "daemon/needs_root.h"
#include "daemon/world.h"

namespace shunt::test {
namespace {

constexpr int kConnects = 10'000;

sockaddr_in ipv4(const char* ip, std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  (void)::inet_pton(AF_INET, ip, &out.sin_addr);  // a literal
  return out;
}

// Listens on every address of its namespace and counts which one each connection came to.
class Counter {
 public:
  explicit Counter(const lab::Netns& where) {
    listener_ = where.run([] {
      UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const sockaddr_in any = ipv4("0.0.0.0", 8080);
      const int on = 1;
      (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // the bind tells
      if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 ||
          ::listen(fd.get(), 4096) != 0) {
        throw std::runtime_error("listen");
      }
      return fd;
    });
    thread_ = std::thread([this] { count(); });
  }
  ~Counter() {
    stop_.store(true);
    thread_.join();
  }
  // Once `expected` connections were counted.
  std::map<std::uint32_t, int> counts(int expected) {
    for (int i = 0; i < 1000 && total_.load() < expected; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    stop_.store(true);
    thread_.join();
    thread_ = std::thread([] {});
    return counts_;
  }

 private:
  void count() {
    while (!stop_.load()) {
      pollfd ready{listener_.get(), POLLIN, 0};
      if (::poll(&ready, 1, 20) <= 0) {
        continue;
      }
      const UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      sockaddr_in local{};
      socklen_t size = sizeof local;
      if (peer && ::getsockname(peer.get(), reinterpret_cast<sockaddr*>(&local), &size) == 0) {
        ++counts_[ntohl(local.sin_addr.s_addr)];
        ++total_;
      }
    }
  }

  UniqueFd listener_;
  std::map<std::uint32_t, int> counts_;
  std::atomic<int> total_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// The value that chi-square with `degrees` of freedom exceeds once in ten thousand times (Wilson
// and Hilferty).
double chi_square_limit(double degrees) {
  constexpr double kQuantile = 3.719;  // of the normal distribution at 0.9999
  const double t = 2.0 / (9.0 * degrees);
  return degrees * std::pow(1.0 - t + kQuantile * std::sqrt(t), 3.0);
}

TEST_CASE("10 000 connects spread evenly over K endpoints") {
  SHUNT_NEEDS_ROOT();
  const World world;
  int service_number = 0;
  for (const int endpoints : {1, 2, 3, 5, 8, 9, 17, 100}) {
    const std::string name = "spread" + std::to_string(endpoints);
    const std::string cluster_ip = "10.112.0." + std::to_string(++service_number);
    std::vector<std::string> addresses;
    for (int i = 0; i < endpoints; ++i) {
      addresses.push_back("10.64.0." + std::to_string(1 + i));
    }
    world.apply({service(name, {cluster_ip}), slice(name, "IPv4", addresses)});
    world.settle();

    Counter counter(world.lab().place("pods"));
    const int failed = world.lab().outside().run([&] {
      int failures = 0;
      const sockaddr_in from = ipv4("198.51.100.7", 0);
      const sockaddr_in to = ipv4(cluster_ip.c_str(), 80);
      for (int i = 0; i < kConnects; ++i) {
        const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        // Reset at close: ten thousand ports in TIME_WAIT would end the test for want of ports.
        const linger reset{1, 0};
        (void)::setsockopt(
            fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);  // the connects tell
        (void)::bind(fd.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from);  // as above
        failures +=
            ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ? 0 : 1;
      }
      return failures;
    });
    REQUIRE(failed == 0);
    // A connection that was reset before it was accepted is not counted by everybody's kernel:
    // nearly all must be.
    const std::map<std::uint32_t, int> counts = counter.counts(kConnects);
    int total = 0;
    for (const auto& [ip, count] : counts) {
      total += count;
    }
    CHECK(total >= kConnects * 99 / 100);
    REQUIRE(counts.size() == static_cast<std::size_t>(endpoints));
    const double expected = static_cast<double>(total) / endpoints;
    double chi_square = 0;
    for (const auto& [ip, count] : counts) {
      chi_square += (count - expected) * (count - expected) / expected;
    }
    INFO("K = " << endpoints << ", chi-square " << chi_square);
    CHECK((endpoints == 1 || chi_square <= chi_square_limit(endpoints - 1)));
  }
}

}  // namespace
}  // namespace shunt::test
