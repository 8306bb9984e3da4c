#include "backend/iptables/iptables_backend.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <random>

#include "fake/fake_iptables.h"

namespace shunt::backend::iptables {
namespace {

using desired::DesiredState;
using desired::Fate;
using desired::FrontendKey;
using desired::FrontendPlan;
using test::FakeIptables;
using test::FakeTables;

net::IpAddress ip(unsigned a, unsigned b) {
  net::IpAddress out = *net::parse_ip("10.0.0.0");
  out.bytes[1] = static_cast<std::uint8_t>(a);
  out.bytes[2] = static_cast<std::uint8_t>(b >> 8);
  out.bytes[3] = static_cast<std::uint8_t>(b);
  return out;
}

FrontendKey frontend(unsigned n) { return {ip(96, n), net::Protocol::Tcp, net::Port{80}}; }

// One kernel, and agents that come and go.
struct World {
  std::shared_ptr<FakeIptables> kernel = std::make_shared<FakeIptables>();
  DesiredState wanted;
  Delta delta;
  std::unique_ptr<IptablesBackend> backend;
  bool localhost = false;

  World() {
    wanted.node_port_cidrs = {*net::parse_cidr("0.0.0.0/0")};
    wanted.pod_cidrs = {*net::parse_cidr("10.64.0.0/16")};
    start();
  }
  void start() {
    Settings settings;
    settings.detector.kind = LocalDetector::Kind::SourceRange;
    settings.audit_period = Millis(1'000'000);
    settings.frame.localhost_node_ports = localhost;
    backend = std::make_unique<IptablesBackend>(settings, std::make_unique<FakeTables>(kernel));
    delta.everything = true;
  }

  // Service n with these endpoints; none: refused.
  void set(unsigned n, const std::vector<unsigned>& endpoints) {
    desired::EndpointList list;
    for (const unsigned e : endpoints) {
      list.push_back({ip(64, e), net::Port{8080}});
    }
    std::sort(list.begin(), list.end());
    FrontendPlan plan;
    plan.service = "ns/s" + std::to_string(n);
    if (!list.empty()) {
      plan.fate = Fate::Balance;
      plan.endpoints = std::make_shared<const desired::EndpointList>(list);
    }
    claim(n, {{frontend(n), std::make_shared<const FrontendPlan>(plan)}});
  }
  void remove(unsigned n) { claim(n, {}); }
  void claim(unsigned n, std::vector<desired::Claim> claims) {
    std::vector<desired::Conflict> conflicts;
    wanted.set_service(
        {"ns", "s" + std::to_string(n)}, {}, std::move(claims), delta.frontends, conflicts);
  }

  ApplyReport apply() {
    kernel->inputs.clear();
    return backend->apply(wanted, std::exchange(delta, {}));
  }
  std::vector<std::string>& nat(const std::string& chain) {
    return kernel->tables["nat"].at(chain);
  }
};

// The rules of all chains; of KUBE-SERVICES and the like in no order.
auto contents(const FakeIptables& kernel) {
  auto out = kernel.tables;
  for (auto& [table, chains] : out) {
    for (auto& [chain, rules] : chains) {
      if (chain == "KUBE-SERVICES" || chain == "KUBE-NODEPORTS") {
        std::sort(rules.begin(), rules.end());
      }
    }
  }
  return out;
}

// Everything in there, since nobody else is.
std::size_t rules_of_ours(const FakeIptables& kernel, const std::string& table) {
  std::size_t out = 0;
  for (const auto& [chain, rules] : kernel.tables.at(table)) {
    out += rules.size();
  }
  return out;
}

TEST_CASE("a bare kernel gets everything at once, and a restart writes nothing") {
  World world;
  world.set(1, {1, 2});
  world.set(2, {});
  const ApplyReport first = world.apply();
  REQUIRE(first.outcome);
  CHECK(world.kernel->inputs.size() == 1);
  CHECK(first.cost.commits == 1);
  REQUIRE(first.rules);
  CHECK(first.rules->nat_written == first.rules->nat);
  CHECK(first.rules->nat == rules_of_ours(*world.kernel, "nat"));
  CHECK(first.rules->filter == rules_of_ours(*world.kernel, "filter"));
  CHECK(world.nat("KUBE-SERVICES").size() == 2);
  CHECK(world.nat("KUBE-SERVICES").back().ends_with("-j KUBE-NODEPORTS"));
  CHECK(world.kernel->tables["filter"]["KUBE-SERVICES"].size() == 1);
  CHECK(world.kernel->tables["filter"]["INPUT"].size() == 3);
  CHECK(world.kernel->tables["filter"]["INPUT"].front().ends_with("-j KUBE-PROXY-FIREWALL"));

  world.start();
  const ApplyReport again = world.apply();
  CHECK(again.outcome);
  CHECK(world.kernel->inputs.empty());
}

TEST_CASE("what a change costs does not follow the number of Services") {
  std::vector<std::size_t> bytes;
  for (const unsigned services : {10U, 400U}) {
    World world;
    for (unsigned n = 0; n < services; ++n) {
      world.set(n, {n * 3, n * 3 + 1});
    }
    REQUIRE(world.apply().outcome);
    world.set(7, {21, 23});
    REQUIRE(world.apply().outcome);
    REQUIRE(world.kernel->inputs.size() == 1);
    bytes.push_back(world.kernel->inputs.front().size());
    world.set(7, {});
    REQUIRE(world.apply().outcome);
    bytes.push_back(world.kernel->inputs.front().size());
    world.remove(7);
    REQUIRE(world.apply().outcome);
    bytes.push_back(world.kernel->inputs.front().size());
  }
  REQUIRE(bytes.size() == 6);
  CHECK(std::equal(bytes.begin(), bytes.begin() + 3, bytes.begin() + 3));
}

TEST_CASE("any way to a state gives that state") {
  std::mt19937 random(7);  // NOLINT(bugprone-random-generator-seed): the same walk each time
  World walked;
  World straight;
  REQUIRE(walked.apply().outcome);
  std::map<unsigned, std::vector<unsigned>> last;
  for (int step = 0; step < 300; ++step) {
    const unsigned n = random() % 8;
    if (random() % 5 == 0) {
      walked.remove(n);
      last.erase(n);
    } else {
      std::vector<unsigned> endpoints;
      for (unsigned e = 0; e < 5; ++e) {
        if (random() % 2 == 0) {
          endpoints.push_back(n * 8 + e);
        }
      }
      walked.set(n, endpoints);
      last[n] = endpoints;
    }
    if (random() % 3 == 0) {
      REQUIRE(walked.apply().outcome);
    }
    if (random() % 40 == 0) {
      walked.start();
    }
  }
  const ApplyReport last_report = walked.apply();
  REQUIRE(last_report.outcome);
  for (const auto& [n, endpoints] : last) {
    straight.set(n, endpoints);
  }
  REQUIRE(straight.apply().outcome);
  CHECK(contents(*walked.kernel) == contents(*straight.kernel));
  CHECK(last_report.rules->nat == rules_of_ours(*walked.kernel, "nat"));
  CHECK(walked.nat("KUBE-SERVICES").back().ends_with("-j KUBE-NODEPORTS"));
}

TEST_CASE("what others take away is found and put back, and nothing of theirs is touched") {
  World world;
  FakeIptables& kernel = *world.kernel;
  kernel.tables["nat"]["CNI-HOSTPORT"] = {"-p tcp -j ACCEPT"};
  kernel.tables["nat"]["POSTROUTING"] = {"-s 10.64.0.0/16 -j MASQUERADE"};
  kernel.tables["filter"]["KUBE-FIREWALL"] = {"-m mark --mark 0x8000/0x8000 -j DROP"};
  world.set(1, {1, 2});
  world.set(2, {});
  REQUIRE(world.apply().outcome);
  const auto whole = contents(kernel);
  CHECK(world.backend->take_drift().empty());

  const auto expect_repair = [&](const std::string& kind, bool removed) {
    ++kernel.generation;
    const auto drift = world.backend->take_drift();
    REQUIRE_FALSE(drift.empty());
    CHECK(drift.front().kind == kind);
    CHECK(drift.front().removed == removed);
    REQUIRE(world.apply().outcome);
    CHECK(contents(kernel) == whole);
    CHECK(world.backend->take_drift().empty());
  };
  SECTION("a jump") {
    kernel.tables["nat"]["PREROUTING"].clear();
    expect_repair("rule", true);
  }
  SECTION("a chain") {
    kernel.tables["filter"].erase("KUBE-EXTERNAL-SERVICES");
    expect_repair("chain", true);
  }
  SECTION("a rule of a Service") {
    world.nat("KUBE-SERVICES").erase(world.nat("KUBE-SERVICES").begin());
    expect_repair("rule", true);
  }
  SECTION("a rule that was added") {
    world.nat("KUBE-SERVICES").insert(world.nat("KUBE-SERVICES").begin(), "-j ACCEPT");
    expect_repair("rule", false);
  }
  SECTION("a rule at the end, after which none may be") {
    world.nat("KUBE-SERVICES").push_back("-d 192.0.2.1/32 -j ACCEPT");
    expect_repair("rule", false);
  }
  SECTION("an endpoint") {
    for (auto& [chain, rules] : kernel.tables["nat"]) {
      if (chain.starts_with("KUBE-SEP-")) {
        rules.back() = "-j ACCEPT";
        break;
      }
    }
    expect_repair("rule", false);
  }
  SECTION("all of table nat") {
    auto& nat = kernel.tables["nat"];
    std::erase_if(nat, [](const auto& chain) { return chain.first.starts_with("KUBE-"); });
    nat["OUTPUT"].clear();
    nat["PREROUTING"].clear();
    std::erase_if(
        nat["POSTROUTING"], [](const auto& rule) { return rule.ends_with("KUBE-POSTROUTING"); });
    expect_repair("rule", true);
  }
}

TEST_CASE(
    "the guard of route_localnet stands beside what the kubelet has in its chain, and stays") {
  World world;
  auto& filter = world.kernel->tables["filter"];
  const std::string kubelets = "-m mark --mark 0x8000/0x8000 -j DROP";
  const bool kubelet = GENERATE(true, false);
  if (kubelet) {
    filter["KUBE-FIREWALL"] = {kubelets};
    filter["INPUT"] = {"-j KUBE-FIREWALL"};
  }
  world.localhost = true;
  world.start();
  REQUIRE(world.apply().outcome);
  CHECK(std::ranges::count(filter["INPUT"], "-j KUBE-FIREWALL") == 1);
  CHECK(std::ranges::count(filter["OUTPUT"], "-j KUBE-FIREWALL") == 1);
  CHECK(filter["KUBE-FIREWALL"].size() == (kubelet ? 2 : 1));
  CHECK(filter["KUBE-FIREWALL"].back() == guard_rule());
  CHECK(world.nat("KUBE-SERVICES").back().find("127.0.0.0") == std::string::npos);

  filter["KUBE-FIREWALL"].pop_back();
  ++world.kernel->generation;
  CHECK(world.backend->take_drift().size() == 1);
  REQUIRE(world.apply().outcome);
  CHECK(filter["KUBE-FIREWALL"].back() == guard_rule());

  REQUIRE(world.backend->cleanup());
  CHECK(filter["KUBE-FIREWALL"].back() == guard_rule());
  CHECK(std::ranges::count(filter["INPUT"], "-j KUBE-FIREWALL") == 1);
}

TEST_CASE("changes of others elsewhere are seen without a program, or by one reading") {
  World world;
  world.kernel->tells_fingerprint = GENERATE(true, false);
  const std::size_t a_look = world.kernel->tells_fingerprint ? 0 : 2;
  world.set(1, {1});
  REQUIRE(world.apply().outcome);
  const std::size_t reads = world.kernel->reads;
  CHECK(world.backend->take_drift().empty());
  CHECK(world.kernel->reads == reads);
  world.kernel->change("nat", ":CNI-DN - [0:0]");
  CHECK(world.backend->take_drift().empty());
  CHECK(world.kernel->reads == reads + a_look);

  // After a change of ours as well, and what is ours is found whatever others do beside it.
  world.set(1, {1, 2});
  REQUIRE(world.apply().outcome);
  CHECK(world.backend->take_drift().empty());
  world.kernel->change("nat", ":CNI-DN2 - [0:0]");
  CHECK(world.backend->take_drift().empty());
  CHECK(world.kernel->reads == reads + 2 * a_look);
  world.nat("KUBE-MARK-MASQ").clear();
  ++world.kernel->generation;
  CHECK(world.backend->take_drift().size() == 1);
}

TEST_CASE("what others do between a look and our next change is found as well") {
  World world;
  world.kernel->tells_fingerprint = GENERATE(true, false);
  world.set(1, {1});
  REQUIRE(world.apply().outcome);
  CHECK(world.backend->take_drift().empty());
  world.nat("KUBE-MARK-MASQ").clear();
  ++world.kernel->generation;
  world.set(1, {1, 2});
  REQUIRE(world.apply().outcome);
  CHECK(world.backend->take_drift().size() == 1);
  REQUIRE(world.apply().outcome);
  CHECK(world.nat("KUBE-MARK-MASQ").size() == 1);
  CHECK(world.backend->take_drift().empty());
}

TEST_CASE("a Service that is refused is found, named, and harms nobody") {
  World world;
  for (unsigned n = 0; n < 40; ++n) {
    world.set(n, {n});
  }
  world.kernel->refuses = [](const std::string& line) {
    return line.find("ns/s17 ") != std::string::npos;
  };
  const ApplyReport report = world.apply();
  REQUIRE(report.outcome);
  REQUIRE(report.set_aside.size() == 1);
  CHECK(report.set_aside.front().frontend == frontend(17));
  CHECK(world.nat("KUBE-SERVICES").size() == 40);

  // Later changes go on without it, in one document.
  world.set(3, {103});
  REQUIRE(world.apply().outcome);
  CHECK(world.kernel->inputs.size() == 1);

  world.kernel->refuses = [](const std::string&) { return false; };
  world.delta.frontends = {frontend(17)};
  const ApplyReport later = world.apply();
  REQUIRE(later.outcome);
  CHECK(later.accepted == std::vector{frontend(17)});
  CHECK(world.nat("KUBE-SERVICES").size() == 41);
}

TEST_CASE("a lost race for the lock loses nothing") {
  World world;
  world.set(1, {1});
  REQUIRE(world.apply().outcome);
  world.set(1, {1, 2});
  world.kernel->fault = Error{Errc::Again, 0, "another app is currently holding the xtables lock"};
  const ApplyReport lost = world.apply();
  REQUIRE_FALSE(lost.outcome);
  CHECK(world.kernel->inputs.size() == 1);
  world.delta.frontends = lost.retry;
  REQUIRE(world.apply().outcome);
  CHECK(world.nat("KUBE-SERVICES").size() == 2);
  world.start();
  REQUIRE(world.apply().outcome);
  CHECK(world.kernel->inputs.empty());
}

TEST_CASE("what is not as we believe is read again and written right") {
  World world;
  world.set(1, {1});
  world.set(2, {2});
  REQUIRE(world.apply().outcome);
  world.nat("KUBE-SERVICES").clear();  // and nobody has told us yet
  world.set(1, {});
  REQUIRE(world.apply().outcome);
  CHECK(world.nat("KUBE-SERVICES").size() == 2);
}

TEST_CASE("kube-proxy's chains are taken over, and those of Services that went go") {
  World world;
  world.set(1, {1});
  REQUIRE(world.apply().outcome);
  const auto whole = contents(*world.kernel);
  world.kernel->tables["nat"]["KUBE-SEP-AAAAAAAAAAAAAAAA"] = {"-j ACCEPT"};
  world.kernel->tables["nat"]["KUBE-SVC-AAAAAAAAAAAAAAAA"] = {"-j KUBE-SEP-AAAAAAAAAAAAAAAA"};
  world.kernel->tables["nat"]["KUBE-PROXY-CANARY"] = {};
  world.nat("KUBE-SERVICES")
      .insert(world.nat("KUBE-SERVICES").begin(), "-d 10.96.9.9/32 -j KUBE-SVC-AAAAAAAAAAAAAAAA");
  world.start();
  REQUIRE(world.apply().outcome);
  CHECK(contents(*world.kernel) == whole);
}

TEST_CASE("a chain that somebody else's rule leads to stays, empty, and stops nothing") {
  World world;
  world.set(1, {1});
  world.set(2, {2});
  REQUIRE(world.apply().outcome);
  const std::string chain = world.nat("KUBE-SERVICES").front();
  const std::string target = chain.substr(chain.rfind(' ') + 1);
  world.kernel->tables["nat"]["OTHERS"] = {"-j " + target};
  world.remove(1);
  world.remove(2);
  world.set(3, {3});
  REQUIRE(world.apply().outcome);
  CHECK(world.nat(target).empty());
  CHECK(world.nat("KUBE-SERVICES").size() == 2);
  ++world.kernel->generation;
  CHECK(world.backend->take_drift().empty());
}

TEST_CASE("cleanup leaves what is not ours") {
  World world;
  const auto before = world.kernel->tables;
  world.set(1, {1});
  REQUIRE(world.apply().outcome);
  REQUIRE(world.backend->cleanup());
  CHECK(world.kernel->tables == before);
}

}  // namespace
}  // namespace shunt::backend::iptables
