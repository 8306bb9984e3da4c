// The monitor on the real kernel, in a network namespace of its own: as root.
#include "netlink/route.h"

#include <linux/if_addr.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <exception>
#include <thread>

#include "base/backoff.h"
#include "base/subprocess.h"
#include "netlink/interface_addresses.h"

namespace shunt::netlink {
namespace {

using Texts = std::vector<std::string>;

// Runs in a thread that has a namespace of its own, which ends with it.
template <typename Test>
void in_namespace(const Test& test) {
  if (::geteuid() != 0) {
    SKIP("needs root, for a network namespace");
  }
  std::exception_ptr failed;
  std::thread([&] {
    try {
      REQUIRE(::unshare(CLONE_NEWNET) == 0);
      test();
    } catch (...) {
      failed = std::current_exception();
    }
  }).join();
  if (failed) {
    std::rethrow_exception(failed);
  }
}

void ip(Texts words) {
  words.insert(words.begin(), "ip");
  const auto ran = run({.argv = std::move(words)});
  REQUIRE(ran);
  CAPTURE(ran->diagnostics);
  REQUIRE(ran->exit_code == 0);
}

// Any device will do; not every kernel has dummies.
void add_link() { ip({"link", "add", "up0", "type", "veth", "peer", "name", "up1"}); }

AddressMonitor open_monitor() {
  auto monitor = AddressMonitor::open();
  REQUIRE(monitor);
  return std::move(*monitor);
}

// "up0 192.0.2.1/24"
Texts lines_of(const AddressMonitor& monitor) {
  Texts out;
  for (const HostAddress& one : monitor.addresses()) {
    std::string line = one.interface_name;
    line.append(" ").append(net::to_string(one.address)).append("/");
    line.append(std::to_string(one.prefix_length));
    out.push_back(line);
  }
  return out;
}

// Whether there is word of a change within two seconds, and the addresses are others.
bool changes(AddressMonitor& monitor) {
  const auto deadline = Clock::now() + std::chrono::seconds(2);
  while (Clock::now() < deadline) {
    pollfd fd{monitor.fd(), POLLIN, 0};
    (void)::poll(&fd, 1, 100);
    if (monitor.take_changes()) {
      return true;
    }
  }
  return false;
}

TEST_CASE("the host's addresses are listed, with their interfaces") {
  in_namespace([] {
    add_link();
    ip({"address", "add", "192.0.2.1/24", "dev", "up0"});
    ip({"address", "add", "192.0.2.2/24", "dev", "up0"});
    ip({"address", "add", "198.51.100.1", "peer", "198.51.100.9/32", "dev", "up0"});
    ip({"address", "add", "2001:db8::1/64", "dev", "up0", "nodad"});
    const AddressMonitor monitor = open_monitor();
    CHECK(
        lines_of(monitor) ==
        Texts{"up0 192.0.2.1/24", "up0 192.0.2.2/24", "up0 198.51.100.1/32", "up0 2001:db8::1/64"});
    CHECK((monitor.addresses()[0].flags & IFA_F_SECONDARY) == 0);
    CHECK((monitor.addresses()[1].flags & IFA_F_SECONDARY) != 0);
    CHECK(monitor.addresses()[0].interface_index > 0);
  });
}

TEST_CASE("addresses that come and go are heard of, and nothing is when nothing happens") {
  in_namespace([] {
    add_link();
    AddressMonitor monitor = open_monitor();
    CHECK(monitor.addresses().empty());
    CHECK_FALSE(monitor.take_changes());
    ip({"address", "add", "192.0.2.1/24", "dev", "up0"});
    CHECK(changes(monitor));
    CHECK(lines_of(monitor) == Texts{"up0 192.0.2.1/24"});
    CHECK_FALSE(monitor.take_changes());

    ip({"link", "set", "up0", "name", "uplink"});
    CHECK(changes(monitor));
    CHECK(lines_of(monitor) == Texts{"uplink 192.0.2.1/24"});

    ip({"link", "delete", "uplink"});
    CHECK(changes(monitor));
    CHECK(monitor.addresses().empty());
  });
}

TEST_CASE("what is said of links alone is no change") {
  in_namespace([] {
    AddressMonitor monitor = open_monitor();
    add_link();
    pollfd fd{monitor.fd(), POLLIN, 0};
    CHECK(::poll(&fd, 1, 2000) == 1);
    CHECK_FALSE(monitor.take_changes());
    CHECK(::poll(&fd, 1, 0) == 0);
  });
}

TEST_CASE("words that the kernel dropped are made good by reading again") {
  in_namespace([] {
    add_link();
    AddressMonitor monitor = open_monitor();
    const int small = 1;  // the least that the kernel grants
    REQUIRE(::setsockopt(monitor.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
    std::string batch;
    constexpr std::size_t kAddresses = 200;
    for (std::size_t i = 0; i < kAddresses; ++i) {
      batch += "address add 10.1.0." + std::to_string(i + 1) + "/32 dev up0\n";
    }
    const auto ran = run({.argv = {"ip", "-batch", "-"}, .input = batch});
    REQUIRE(ran);
    REQUIRE(ran->exit_code == 0);
    std::array<char, 1> byte{};
    CHECK(::recv(monitor.fd(), byte.data(), 1, MSG_PEEK | MSG_DONTWAIT) < 0);
    CHECK(errno == ENOBUFS);
    ip({"address", "add", "10.2.0.1/32", "dev", "up0"});
    CHECK(monitor.take_changes());
    CHECK(monitor.addresses().size() == kAddresses + 1);
    CHECK_FALSE(monitor.take_changes());
  });
}

TEST_CASE("this host has a loopback address") {
  const auto addresses = interface_addresses();
  REQUIRE(addresses);
  CHECK(std::ranges::find(*addresses, net::parse_ip("127.0.0.1").value()) != addresses->end());
}

}  // namespace
}  // namespace shunt::netlink
