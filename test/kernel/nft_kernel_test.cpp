// The nftables back end on the real kernel: what nft prints of it, what a restart finds, and what a
// change costs.

#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <string>

#include "backend/nft/keys.h"
#include "backend/nft/probe.h"
#include "base/unique_fd.h"
#include "kernel/kernel_world.h"
#include "kernel/table_contents.h"

namespace shunt::backend::nft {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): World and what belongs to it

TEST_CASE("a large table is looked up at a restart, and what is not as it was is found") {
  enter_namespace();
  for (const net::Family family : {net::Family::IPv4, net::Family::IPv6}) {
    World world(family);
    // Classes of 4 to 8192 slots, more than are listed.
    for (unsigned n = 0; n < 900; ++n) {
      std::set<unsigned> endpoints;
      for (unsigned e = 0; e <= 33 + n % 32; ++e) {
        endpoints.insert(n + e);
      }
      world.set(n, endpoints, /*plain=*/true);
    }
    std::set<unsigned> many;
    for (unsigned e = 0; e < 5'000; ++e) {
      many.insert(e);
    }
    world.set(901, many, /*plain=*/true);
    world.set(902, {1}, /*plain=*/true);
    world.apply(*start(family));
    const Cost again = world.apply(*start(family)).cost;
    INFO(again.messages << " messages, " << again.elements << " elements");
    CHECK(again.commits == 0);

    // Somebody takes an endpoint away: the last of one frontend, one in the midst of another.
    const TableContents before = table_contents(family);
    auto transport = KernelTransport::open();
    REQUIRE(transport);
    Set endpoints;
    endpoints.name = "endpoints";
    endpoints.holds = Set::Holds::Endpoints;
    for (const auto& [n, slot] : {std::pair{901U, 4'998U}, std::pair{7U, 20U}}) {
      const Element gone{encode_slot(world.frontend(n), slot), {}, false, {}, false};
      REQUIRE((*transport)->delete_elements(family, endpoints, std::span(&gone, 1)));
      CHECK(world.apply(*start(family)).cost.commits > 0);
      CHECK(table_contents(family) == before);
    }
  }
}

TEST_CASE("nft prints the program, and reads back what it printed", "[quick]") {
  enter_namespace();
  for (const net::Family family : {net::Family::IPv4, net::Family::IPv6}) {
    World world(family);
    for (unsigned n = 0; n < 20; ++n) {
      world.set(
          n,
          n % 5 == 0 ? std::set<unsigned>{}
                     : std::set<unsigned>{n, n + 1, n + 2, n + 3, n + 4, n + 5});
    }
    const bool v4 = family == net::Family::IPv4;
    world.wanted.service_cidrs = {
        *net::parse_cidr(v4 ? "10.96.0.0/12" : "fd60::/112"),
        *net::parse_cidr(v4 ? "255.255.0.0/16" : "ffff::/16")};
    world.wanted.pod_cidrs = {*net::parse_cidr(v4 ? "10.64.0.0/14" : "fd64::/48")};
    world.wanted.node_port_cidrs = {net::Cidr{net::IpAddress{family, {}}, 0}};
    world.apply(*start(family, by_source()));
  }
  const std::string first = run("nft list ruleset");
  CHECK(
      first.find("typeof ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . "
                 "th dport") != std::string::npos);
  CHECK(first.find("comment \"ns/service-1:http\"") != std::string::npos);
  const std::string path = "/tmp/kube-shunt-listing-" + std::to_string(::getpid());
  std::ofstream(path) << first;
  REQUIRE(::unshare(CLONE_NEWNET) == 0);
  run("nft -f " + path);
  const std::string second = run("nft list ruleset");
  (void)std::remove(path.c_str());
  // Elements of a hash set come in no order.
  const auto sorted_words = [](const std::string& text) {
    std::multiset<std::string> words;
    std::string word;
    for (const char c : text) {
      if (c == ',' || c == '\n') {
        words.insert(word.substr(std::min(word.find_first_not_of(" \t"), word.size())));
        word.clear();
      } else if (c != '{' && c != '}') {
        word += c;
      }
    }
    return words;
  };
  CHECK(sorted_words(first) == sorted_words(second));
  CHECK(first.size() == second.size());

  // A daemon that starts over the reloaded listing takes it for its own.
  for (const net::Family family : {net::Family::IPv4, net::Family::IPv6}) {
    CHECK(table_contents(family).size() > 90);
    World nothing(family);
    nothing.apply(*start(family, by_source()));
  }
}

TEST_CASE("every detector makes a program that nft can print") {
  using Kind = LocalDetector::Kind;
  const ProgramSettings settings[] = {
      {0x4000, false, {Kind::None, {}}},
      {0x4000, true, {Kind::None, {}}},
      {0x80000000, false, {Kind::InputInterface, "pods0"}},
      {0x1, false, {Kind::InputInterfacePrefix, "pod"}},
  };
  const char* expected[] = {
      "chain service {\n\t\tip daddr . meta l4proto . th dport @external-local-ips goto "
      "external-local",
      "ip daddr @cluster-ips jump mark-for-masquerade",
      "iifname != \"pods0\" jump mark-for-masquerade",
      "iifname != \"pod*\" jump mark-for-masquerade"};
  for (std::size_t i = 0; i < std::size(settings); ++i) {
    enter_namespace();
    World world(net::Family::IPv4);
    world.set(1, {1});
    world.apply(*start(net::Family::IPv4, settings[i]));
    const std::string listing = run("nft list ruleset");
    INFO(listing);
    CHECK(listing.find(expected[i]) != std::string::npos);
  }
}

TEST_CASE("a restart writes nothing, another program replaces the table, clean-up leaves nothing") {
  enter_namespace();
  run("nft add table ip foreign");
  for (const net::Family family : {net::Family::IPv4, net::Family::IPv6}) {
    World world(family);
    for (unsigned n = 0; n < 300; ++n) {
      world.set(n, {n, n + 1, n + 2});
    }
    world.wanted.service_cidrs = {
        *net::parse_cidr(family == net::Family::IPv4 ? "10.96.0.0/12" : "fd60::/108")};
    world.wanted.pod_cidrs = {
        *net::parse_cidr(family == net::Family::IPv4 ? "10.64.0.0/14" : "fd64::/48")};
    world.apply(*start(family, by_source()));
    CHECK(world.apply(*start(family, by_source())).cost.commits == 0);
    const TableContents before = table_contents(family);
    CHECK(world.apply(*start(family, ProgramSettings{0x8000, true, {}})).cost.commits == 1);
    CHECK(table_contents(family) == before);
    CHECK(start(family)->cleanup());
    CHECK(start(family)->cleanup());
  }
  CHECK(run("nft list ruleset") == "table ip foreign {\n}\n");
}

TEST_CASE("1 000 random changes, singly and in bursts, over restarts, end as a fresh start would") {
  enter_namespace();
  for (const net::Family family : {net::Family::IPv4, net::Family::IPv6}) {
    std::mt19937 random(family == net::Family::IPv4 ? 3 : 5);
    const auto below = [&](unsigned n) {
      return std::uniform_int_distribution<unsigned>(0, n - 1)(random);
    };
    World world(family);
    auto backend = start(family, by_source());
    for (int step = 0; step < 1000; ++step) {
      const unsigned n = below(60);
      if (below(6) == 0) {
        world.remove(n);
      } else {
        std::set<unsigned> endpoints;
        for (unsigned i = below(20); i > 0; --i) {
          endpoints.insert(below(100));
        }
        world.set(n, endpoints);
      }
      if (below(20) == 0) {
        const bool v4 = family == net::Family::IPv4;
        world.wanted.service_cidrs = {*net::parse_cidr(
            (v4 ? "10." + std::to_string(96 + below(4)) + ".0.0/"
                : "fd6" + std::to_string(below(4)) + "::/") +
            std::to_string(12 + below(4)))};
        world.delta.ranges = true;
      }
      if (below(3) == 0) {
        world.apply(*backend);
      }
      if (below(60) == 0) {
        backend = start(family, by_source());
      }
    }
    world.apply(*backend);
    const TableContents reached = table_contents(family);
    CHECK(start(family)->cleanup());
    world.apply(*start(family, by_source()));
    CHECK(table_contents(family) == reached);
  }
}

struct Cost {
  std::uint64_t messages;
  std::uint64_t bytes;
  bool operator==(const Cost&) const = default;
};

TEST_CASE(
    "what a change costs does not depend on the number of Services, and no rule is written again") {
  std::vector<std::vector<Cost>> costs;
  for (const unsigned services : {10U, 5000U}) {
    enter_namespace();
    World world(net::Family::IPv4);
    auto backend = start(net::Family::IPv4, by_source());
    for (unsigned n = 0; n < services; ++n) {
      world.set(n, {1, 2, 3, 4}, true);
    }
    world.apply(*backend);
    const std::string rules =
        run("nft -a -s list table ip kube-shunt | grep -E 'chain|handle' | grep -v elements | grep "
            "-vE '^\\s+(set|map) ' | md5sum");
    std::vector<Cost> seen;
    const auto measure = [&] {
      const ApplyReport report = world.apply(*backend);
      CHECK(report.cost.commits == 1);
      seen.push_back({report.cost.messages, report.cost.bytes});
    };
    world.set(4, {1, 2, 3, 9}, true);  // a flip
    measure();
    world.set(4, {1, 2, 3}, true);  // the count changes
    measure();
    world.set(4, {1, 2, 3, 4}, true);
    measure();
    world.set(4, {1, 2, 3, 4, 5}, true);  // and the class
    measure();
    world.set(65537, {1, 2, 3}, true);  // a new Service
    measure();
    world.remove(65537);
    measure();
    CHECK(
        run("nft -a -s list table ip kube-shunt | grep -E 'chain|handle' | grep -v elements | grep "
            "-vE '^\\s+(set|map) ' | md5sum") == rules);
    for (const Cost& cost : seen) {
      CHECK(cost.messages <= 6);
    }
    costs.push_back(seen);
  }
  CHECK(costs[0] == costs[1]);
}

TEST_CASE("a probe sees the program, single frontends, and what Services were given", "[quick]") {
  enter_namespace();
  run("ip link set lo up");
  World world(net::Family::IPv4);
  world.set(4, {1}, /*plain=*/true);
  world.set(8, {1}, /*plain=*/true);
  auto backend = start(net::Family::IPv4, by_source());
  auto opened = Probe::open(net::Family::IPv4, by_source());
  REQUIRE(opened);
  Probe& probe = **opened;
  CHECK_FALSE(probe.program_is_whole().value());
  world.apply(*backend);
  CHECK(probe.program_is_whole().value());
  CHECK(probe.has(world.frontend(4)).value());
  CHECK_FALSE(probe.has(world.frontend(5)).value());
  CHECK_FALSE(
      probe.has(desired::node_port_key(net::Family::IPv4, net::Protocol::Tcp, net::Port{30000}))
          .value());

  // Three new connections, to whoever: the counter looks at the first packet, and nobody waits for
  // an answer.
  run("ip addr add 10.1.1.1/32 dev lo; ip route add default dev lo");
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(80);
  std::memcpy(&to.sin_addr, world.frontend(4).ip.bytes.data(), sizeof to.sin_addr);
  for (int i = 0; i < 3; ++i) {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    CHECK(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0);
    CHECK(errno == EINPROGRESS);
  }
  std::map<std::string, std::uint64_t> counts;
  const auto seen = probe.new_connections();
  REQUIRE(seen);
  for (const auto& one : *seen) {
    counts[one.service] = one.count;
  }
  CHECK(
      counts ==
      std::map<std::string, std::uint64_t>{{"ns/service-4:http", 3}, {"ns/service-8:http", 0}});

  run("nft flush chain ip kube-shunt services");
  CHECK_FALSE(probe.program_is_whole().value());
}

}  // namespace
}  // namespace shunt::backend::nft
