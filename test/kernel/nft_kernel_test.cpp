// The nftables back end on the real kernel: what nft prints of it, what a restart finds, and what a
// change costs.

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "backend/nft/keys.h"
#include "backend/nft/nft_backend.h"
#include "backend/nft/wire.h"
#include "kernel/table_contents.h"

namespace shunt::backend::nft {
namespace {

using desired::DesiredState;
using desired::Fate;
using desired::FrontendKey;
using desired::FrontendPlan;
using test::table_contents;
using test::TableContents;

// Moves the test into a network namespace of its own; the sockets it opens and the programs it runs
// follow.
void enter_namespace() {
  if (::geteuid() != 0) {
    SKIP("needs root");
  }
  REQUIRE(::unshare(CLONE_NEWNET) == 0);
}

std::string run(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 65536> buffer;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    out.append(buffer.data(), got);
  }
  const int status = ::pclose(pipe);
  INFO(command << "\n" << out);
  REQUIRE(status == 0);
  return out;
}

net::IpAddress ip(net::Family family, unsigned kind, unsigned n) {
  net::IpAddress out{family, {}};
  const std::size_t last = out.size() - 1;
  out.bytes[0] = family == net::Family::IPv4 ? 10 : 0xfd;
  out.bytes[1] = static_cast<std::uint8_t>(kind + (n >> 16 & 0x3));
  out.bytes[last - 1] = static_cast<std::uint8_t>(n >> 8);
  out.bytes[last] = static_cast<std::uint8_t>(n);
  return out;
}

struct World {
  explicit World(net::Family of) : family(of) {}

  FrontendKey frontend(unsigned n) const {
    return {ip(family, 96, n), n % 3 == 0 ? net::Protocol::Udp : net::Protocol::Tcp, net::Port{80}};
  }
  // Service n: a ClusterIP, and what its number gives it: affinity, a balancer address with policy
  // Local, source ranges, a NodePort.
  void set(unsigned n, const std::set<unsigned>& endpoints, bool plain = false) {
    FrontendPlan plan;
    plan.service = "ns/service-" + std::to_string(n) + ":http";
    plan.endpoints = list(endpoints);
    plan.fate = plan.endpoints ? Fate::Balance : n % 7 == 6 ? Fate::Drop : Fate::Refuse;
    const bool outside = !plain && n % 3 == 1;
    if (!plain && n % 4 == 1) {
      desired::Affinity& affinity = plan.affinity.emplace();
      affinity.timeout = std::chrono::seconds(n % 8 == 1 ? 10800 : 60);
      affinity.group = frontend(n);
      affinity.local_memory = outside;
    }
    std::vector<desired::Claim> claims{claim(frontend(n), plan)};
    if (outside) {
      plan.reach = n % 2 == 0 ? desired::Reach::External : desired::Reach::ExternalLocal;
      if (plan.reach == desired::Reach::ExternalLocal && !endpoints.empty()) {
        plan.local_endpoints = list({*endpoints.begin()});
      }
      claims.push_back(claim(
          desired::node_port_key(
              family, frontend(n).protocol, net::Port{static_cast<std::uint16_t>(30000 + n)}),
          plan));
      plan.sources = ranges(n);
      claims.push_back(claim({ip(family, 192, n), frontend(n).protocol, net::Port{80}}, plan));
    }
    std::vector<desired::Conflict> conflicts;
    wanted.set_service(
        {"ns", std::to_string(n)}, {}, std::move(claims), delta.frontends, conflicts);
  }
  desired::Claim claim(const FrontendKey& key, const FrontendPlan& plan) const {
    return {key, std::make_shared<const FrontendPlan>(plan)};
  }
  desired::EndpointListPtr list(const std::set<unsigned>& endpoints) const {
    desired::EndpointList out;
    for (const unsigned e : endpoints) {
      out.push_back({ip(family, 64, e), net::Port{8080}});
    }
    std::sort(out.begin(), out.end());
    return out.empty() ? nullptr : std::make_shared<const desired::EndpointList>(std::move(out));
  }
  // Another set of ranges with every endpoint that changes; some overlap, some touch.
  std::shared_ptr<const std::vector<net::Cidr>> ranges(unsigned n) {
    const std::uint8_t bits = family == net::Family::IPv4 ? 24 : 120;
    std::vector<net::Cidr> out;
    for (unsigned i = 0; i <= ++changes % 4; ++i) {
      net::IpAddress base = ip(family, 198, n * 4 + i * (changes % 3));
      base.bytes[base.size() - 2] = base.bytes[base.size() - 1];
      base.bytes[base.size() - 1] = 0;
      out.push_back({base, bits});
    }
    return std::make_shared<const std::vector<net::Cidr>>(std::move(out));
  }
  void remove(unsigned n) {
    std::vector<desired::Conflict> conflicts;
    wanted.set_service({"ns", std::to_string(n)}, {}, {}, delta.frontends, conflicts);
  }
  ApplyReport apply(NftBackend& backend) {
    ApplyReport report = backend.apply(wanted, delta);
    delta = {};
    INFO((report.outcome ? std::string() : report.outcome.error().what));
    REQUIRE(report.outcome);
    REQUIRE(report.set_aside.empty());
    return report;
  }

  net::Family family;
  DesiredState wanted;
  Delta delta;
  unsigned changes = 0;
};

std::unique_ptr<NftBackend> start(net::Family family, const ProgramSettings& settings = {}) {
  auto transport = KernelTransport::open();
  REQUIRE(transport);
  auto purge_transport = KernelTransport::open();
  REQUIRE(purge_transport);
  auto backend = std::make_unique<NftBackend>(
      family,
      settings,
      std::move(*transport),
      std::make_unique<AffinityPurger>(family, std::move(*purge_transport)));
  const auto adopted = backend->adopt();
  INFO((adopted ? std::string() : adopted.error().what));
  REQUIRE(adopted);
  return backend;
}

ProgramSettings by_source() { return {0x4000, false, {LocalDetector::Kind::SourceRange, {}}}; }

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
    CHECK(world.apply(*start(family)).cost.commits == 0);

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

TEST_CASE("nft prints the program, and reads back what it printed") {
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

}  // namespace
}  // namespace shunt::backend::nft
