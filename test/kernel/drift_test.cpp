// What others do to our tables is heard of and undone, and what we do is not taken for theirs.

#include <poll.h>

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backend/nft/keys.h"
#include "kernel/kernel_world.h"
#include "kernel/table_contents.h"
#include "netlink/listener.h"

namespace shunt::backend::nft {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): World and what belongs to it

const char* word(net::Family family) { return family == net::Family::IPv4 ? "ip" : "ip6"; }

std::string table(net::Family family) { return std::string(word(family)) + " kube-shunt"; }

// Chains with their rules, without what sets hold. The order of chains is that of their making.
std::multiset<std::string> chains(net::Family family) {
  const std::string listing = run("nft -t list table " + table(family));
  std::multiset<std::string> out;
  std::size_t begin = listing.find("\tchain ");
  while (begin != std::string::npos) {
    const std::size_t end = listing.find("\n\t}", begin);
    out.insert(listing.substr(begin, end - begin));
    begin = listing.find("\tchain ", end);
  }
  return out;
}

bool is_readable(const NftBackend& backend) {
  pollfd descriptor{backend.drift_fd(), POLLIN, 0};
  return ::poll(&descriptor, 1, 0) == 1;
}

std::set<std::string> kinds(const std::vector<Drift>& drifts) {
  std::set<std::string> out;
  for (const Drift& drift : drifts) {
    out.insert(drift.kind);
  }
  return out;
}

// A cluster of every sort of Service, written and listened to.
struct Scene {
  explicit Scene(net::Family of) : family(of), world(of) {
    const bool v4 = family == net::Family::IPv4;
    for (unsigned n = 0; n < 60; ++n) {
      std::set<unsigned> endpoints;
      for (unsigned e = 0; e < n % 12; ++e) {
        endpoints.insert(n + e);
      }
      world.set(n, endpoints);
    }
    world.wanted.service_cidrs = {
        *net::parse_cidr(v4 ? "10.96.0.0/12" : "fd60::/108"),
        *net::parse_cidr(v4 ? "10.200.0.0/16" : "fd61::/108")};
    world.wanted.pod_cidrs = {*net::parse_cidr(v4 ? "10.64.0.0/14" : "fd64::/48")};
    world.wanted.node_port_cidrs = {*net::parse_cidr(v4 ? "10.80.0.0/24" : "fd80::/64")};
    backend = start(family, by_source());
    world.apply(*backend);
    REQUIRE(backend->drift_fd() >= 0);
    contents = table_contents(family);
    rules = chains(family);
  }

  void check_repaired() {
    CHECK(table_contents(family) == contents);
    CHECK(chains(family) == rules);
    CHECK(backend->take_drift().empty());  // our own repair is no drift
    // Nothing is left to do for who comes next.
    CHECK(world.apply(*start(family, by_source())).cost.commits == 0);
  }

  net::Family family;
  World world;
  std::unique_ptr<NftBackend> backend;
  TableContents contents;
  std::multiset<std::string> rules;
};

TEST_CASE("what others do to a table is heard of, named and undone") {
  for (const net::Family family : {net::Family::IPv4, net::Family::IPv6}) {
    enter_namespace();
    Scene scene(family);
    const std::string t = table(family);
    const bool v4 = family == net::Family::IPv4;
    const std::string nobody = v4 ? "10.99.99.99" : "fd99::99";
    const struct {
      std::string command;
      std::string kind;
      std::string name;
    } cases[] = {
        {"nft flush set " + t + " service-ips", "element", "service-ips"},
        {"nft flush set " + t + " class-8", "element", "class-8"},
        {"nft flush map " + t + " endpoints", "element", "endpoints"},
        {"nft flush map " + t + " local-endpoints", "element", "local-endpoints"},
        {"nft flush set " + t + " cluster-ips", "element", "cluster-ips"},
        {"nft flush set " + t + " affinity-local", "element", "affinity-local"},
        {"nft flush map " + t + " sticky-ips", "element", "sticky-ips"},
        {"nft flush set " + t + " service-nodeports", "element", "service-nodeports"},
        {"nft flush set " + t + " allowed-sources", "element", "allowed-sources"},
        {"nft flush set " + t + " service-cidrs", "element", "service-cidrs"},
        {"nft flush set " + t + " pod-cidrs", "element", "pod-cidrs"},
        {"nft add element " + t + " service-ips { " + nobody + " . tcp . 80 }",
         "element",
         "service-ips"},
        {"nft add element " + t + " endpoints { " + nobody + " . tcp . 80 . 3 : " + nobody +
             " . 80 }",
         "element",
         "endpoints"},
        {"nft add element " + t + " cluster-ips { " + nobody + " }", "element", "cluster-ips"},
        {"nft flush chain " + t + " services", "rule", "services"},
        {"nft insert rule " + t + " dispatch drop", "rule", "dispatch"},
        {"nft add chain " + t + " mine '{ type filter hook input priority 0; policy drop; }'",
         "chain",
         "mine"},
        {"nft add chain " + t + " mine; nft add rule " + t + " services jump mine",
         "chain",
         "mine"},
        {"nft add chain " + t + " filter-input '{ policy drop; }'", "chain", "filter-input"},
        {"nft flush chain " + t + " nat-prerouting; nft delete chain " + t + " nat-prerouting",
         "chain",
         "nat-prerouting"},
        {"nft flush table " + t, "rule", "services"},
        {"nft delete table " + t, "table", ""},
        {"nft flush ruleset", "table", ""},
    };
    for (const auto& one : cases) {
      DYNAMIC_SECTION(word(family) << ": " << one.command) {
        run(one.command);
        CHECK(is_readable(*scene.backend));
        const std::vector<Drift> seen = scene.backend->take_drift();
        const auto named = std::find_if(seen.begin(), seen.end(), [&](const Drift& drift) {
          return drift.kind == one.kind && drift.name == one.name;
        });
        REQUIRE(named != seen.end());
        CHECK(named->author.starts_with("nft (pid "));
        CHECK(scene.world.apply(*scene.backend).cost.commits > 0);
        scene.check_repaired();
      }
    }
  }
}

TEST_CASE("what is not our table is no matter of ours") {
  enter_namespace();
  Scene scene(net::Family::IPv4);
  run("nft add table ip other; nft add chain ip other services; nft add table inet kube-shunt; "
      "nft add rule ip other services accept; nft flush chain ip other services");
  CHECK(is_readable(*scene.backend));
  CHECK(scene.backend->take_drift().empty());
  CHECK(scene.world.apply(*scene.backend).cost.commits == 0);
}

TEST_CASE("our own writes are not heard, however many") {
  enter_namespace();
  Scene scene(net::Family::IPv4);
  for (unsigned n = 0; n < 3'000; ++n) {
    scene.world.set(n, {n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7});
  }
  scene.world.apply(*scene.backend);
  CHECK_FALSE(is_readable(*scene.backend));
}

TEST_CASE("more changes than a socket holds are not missed") {
  enter_namespace();
  Scene scene(net::Family::IPv4);
  for (unsigned n = 0; n < 9'000; ++n) {
    std::set<unsigned> endpoints;
    for (unsigned e = 0; e < 10; ++e) {
      endpoints.insert(n + e);
    }
    scene.world.set(n, endpoints, /*plain=*/true);
  }
  // What affinity no longer needs goes a while later.
  for (auto report = scene.world.apply(*scene.backend); report.again_in;
       report = scene.world.apply(*scene.backend)) {
    std::this_thread::sleep_for(*report.again_in);
  }
  scene.contents = table_contents(scene.family);
  scene.rules = chains(scene.family);
  run("nft flush map ip kube-shunt endpoints");
  CHECK(kinds(scene.backend->take_drift()).contains("unknown"));
  scene.world.apply(*scene.backend);
  scene.check_repaired();
}

TEST_CASE("remembered clients survive a repair of the rules", "[quick]") {
  enter_namespace();
  Scene scene(net::Family::IPv4);
  const std::string before = run("nft -t list table ip kube-shunt | grep -c 'map affinity-'");
  run("nft flush chain ip kube-shunt dispatch");
  REQUIRE_FALSE(scene.backend->take_drift().empty());
  CHECK(scene.world.apply(*scene.backend).cost.commits == 1);
  CHECK(run("nft -t list table ip kube-shunt | grep -c 'map affinity-'") == before);
  scene.check_repaired();
}

// Somebody who takes away, adds and alters single elements, as fast as we write.
class Vandal {
 public:
  explicit Vandal(net::Family family) : family_(family), program_(make_program(family, {})) {
    auto opened = KernelTransport::open();
    REQUIRE(opened);
    transport_ = std::move(*opened);
  }

  template <typename Below>
  void strike(const Below& below) {
    const Set& set = program_.sets[below(static_cast<unsigned>(program_.sets.size()))];
    if (set.dynamic() || set.interval) {
      return;
    }
    std::vector<Element> elements = elements_of(*transport_, family_, set);
    if (elements.empty()) {
      return;
    }
    Element& element = elements[below(static_cast<unsigned>(elements.size()))];
    if (below(3) == 0) {  // another key: the last byte of it that counts is not padding
      element.key.bytes[below(4)] ^= 1;
      commit(set, {}, element);
    } else if (below(2) == 0 && set.holds == Set::Holds::Endpoints) {
      const Element before = element;
      element.data.bytes[3] ^= 1;
      commit(set, before, element);
    } else {
      commit(set, element, {});
    }
  }

 private:
  void commit(
      const Set& set, const std::optional<Element>& gone, const std::optional<Element>& come) {
    Transaction transaction;
    if (gone) {
      transaction.changes.remove(set.id, *gone);
    }
    if (come) {
      transaction.changes.add(set.id, *come);
    }
    (void)transport_->commit(program_, transaction);  // what is there already is refused
  }

  net::Family family_;
  Program program_;
  std::unique_ptr<KernelTransport> transport_;
};

TEST_CASE("vandalism between, during and after our own changes ends as if it had not been") {
  for (const net::Family family : {net::Family::IPv4, net::Family::IPv6}) {
    enter_namespace();
    Scene scene(family);
    Vandal vandal(family);
    std::mt19937 random(family == net::Family::IPv4 ? 11 : 13);
    const auto below = [&](unsigned n) {
      return std::uniform_int_distribution<unsigned>(0, n - 1)(random);
    };
    for (int step = 0; step < 300; ++step) {
      for (unsigned blows = below(6); blows > 0; --blows) {
        vandal.strike(below);
      }
      if (below(2) == 0) {
        std::set<unsigned> endpoints;
        for (unsigned i = below(12); i > 0; --i) {
          endpoints.insert(below(100));
        }
        scene.world.set(below(60), endpoints);
      }
      if (below(4) != 0) {  // else our next change runs into it
        (void)scene.backend->take_drift();
      }
      scene.world.apply(*scene.backend);
    }
    (void)scene.backend->take_drift();
    scene.world.apply(*scene.backend);
    const TableContents reached = table_contents(family);
    CHECK(start(family)->cleanup());
    scene.world.apply(*start(family, by_source()));
    CHECK(table_contents(family) == reached);
  }
}

}  // namespace
}  // namespace shunt::backend::nft
