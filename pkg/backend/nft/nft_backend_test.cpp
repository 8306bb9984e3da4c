#include "backend/nft/nft_backend.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <random>
#include <set>

#include "backend/nft/keys.h"
#include "fake/fake_nf_tables.h"

namespace shunt::backend::nft {
namespace {

using desired::DesiredState;
using desired::Fate;
using desired::FrontendKey;
using desired::FrontendPlan;
using test::FakePurger;
using test::FakeTable;
using test::FakeTransport;

net::IpAddress ip(unsigned a, unsigned b) {
  net::IpAddress out = *net::parse_ip("10.0.0.0");
  out.bytes[1] = static_cast<std::uint8_t>(a);
  out.bytes[2] = static_cast<std::uint8_t>(b >> 8);
  out.bytes[3] = static_cast<std::uint8_t>(b);
  return out;
}

FrontendKey frontend(unsigned service) {
  return {ip(96, service), net::Protocol::Tcp, net::Port{80}};
}

// Service n with these endpoints; none: refused.
void set_service(
    DesiredState& wanted,
    Delta& delta,
    unsigned n,
    const std::vector<unsigned>& endpoints,
    bool sticky = false) {
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
  if (sticky) {
    plan.affinity.emplace();
    plan.affinity->timeout = std::chrono::seconds(600);
    plan.affinity->group = frontend(n);
  }
  std::vector<desired::Conflict> conflicts;
  wanted.set_service(
      {"ns", "s" + std::to_string(n)},
      {},
      {{frontend(n), std::make_shared<const FrontendPlan>(plan)}},
      delta.frontends,
      conflicts);
}

void remove_service(DesiredState& wanted, Delta& delta, unsigned n) {
  std::vector<desired::Conflict> conflicts;
  wanted.set_service({"ns", "s" + std::to_string(n)}, {}, {}, delta.frontends, conflicts);
}

// So many endpoints are worth writing ahead.
constexpr unsigned kMany = NftBackend::kElementsAhead;

std::vector<unsigned> numbers(unsigned first, unsigned count) {
  std::vector<unsigned> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

using Purges = FakePurger::Purges;

std::unique_ptr<NftBackend> start(
    const std::shared_ptr<FakeTable>& table,
    const std::shared_ptr<Purges>& purges = std::make_shared<Purges>(),
    const ProgramSettings& settings = {}) {
  auto backend = std::make_unique<NftBackend>(
      net::Family::IPv4,
      settings,
      std::make_unique<FakeTransport>(table),
      std::make_unique<FakePurger>(purges));
  REQUIRE(backend->adopt());
  return backend;
}

std::size_t size_of(const FakeTable& table, SetId set) {
  return table.sets[static_cast<std::size_t>(set)].size();
}

// Elements without their slots: which endpoints a frontend has, not where they sit.
auto contents(const FakeTable& table) {
  std::multiset<std::tuple<std::size_t, std::vector<std::uint8_t>, DataBytes, std::string>> out;
  for (std::size_t set = 0; set < kSetCount; ++set) {
    for (const auto& [key, element] : table.sets[set]) {
      auto bytes = key.first.span();
      if (set == static_cast<std::size_t>(SetId::Endpoints)) {
        bytes = bytes.first(bytes.size() - 4);
      }
      out.emplace(
          set, std::vector<std::uint8_t>(bytes.begin(), bytes.end()), element.data, element.text);
    }
  }
  return out;
}

TEST_CASE("the program is written once, and the data around it") {
  auto table = std::make_shared<FakeTable>();
  auto backend = start(table);
  DesiredState wanted;
  Delta delta;
  set_service(wanted, delta, 1, {1, 2, 3});
  set_service(wanted, delta, 2, {});
  CHECK(backend->apply(wanted, delta).outcome);
  CHECK(table->program_writes == 1);
  CHECK(size_of(*table, SetId::ClusterIps) == 2);
  CHECK(size_of(*table, SetId::ServiceIps) == 2);
  CHECK(size_of(*table, SetId::Endpoints) == 3);
  CHECK(size_of(*table, SetId::RefusedIps) == 1);

  Delta flip;
  set_service(wanted, flip, 1, {1, 2});
  const auto report = backend->apply(wanted, flip);
  CHECK(report.cost.commits == 1);
  CHECK(table->program_writes == 1);
  CHECK(size_of(*table, SetId::Endpoints) == 2);
}

TEST_CASE("on a bare node endpoints are written ahead, and nothing leads to them before apply") {
  auto table = std::make_shared<FakeTable>();
  auto backend = start(table);
  DesiredState wanted;
  Delta delta;
  set_service(wanted, delta, 1, numbers(1, kMany));
  set_service(wanted, delta, 2, {});
  CHECK(backend->prepare(wanted, delta.frontends).commits == 2);  // the program, the endpoints
  CHECK(size_of(*table, SetId::Endpoints) == kMany);
  Delta more;
  set_service(wanted, more, 1, numbers(2, kMany + 1));  // another slice comes, an endpoint goes
  set_service(wanted, more, 3, numbers(7, kMany));
  CHECK(backend->prepare(wanted, more.frontends).commits == 2);
  CHECK(size_of(*table, SetId::Endpoints) == 2 * kMany + 1);
  Delta few;
  set_service(wanted, few, 4, {1});
  CHECK(backend->prepare(wanted, few.frontends).commits == 0);  // they wait for more
  CHECK(size_of(*table, SetId::Endpoints) == 2 * kMany + 1);
  for (const SetId set : {SetId::ServiceIps, SetId::Class4, SetId::RefusedIps}) {
    CHECK(size_of(*table, set) == 0);
  }
  CHECK(size_of(*table, SetId::ClusterIps) == 1);  // the mark that this is unfinished

  remove_service(wanted, more, 3);  // it was a figment of an unfinished list
  CHECK(backend->apply(wanted, more).outcome);
  CHECK(table->program_writes == 1);
  auto other = std::make_shared<FakeTable>();
  CHECK(start(other)->apply(wanted, {}).outcome);
  CHECK(contents(*table) == contents(*other));
}

TEST_CASE("endpoints that an earlier run wrote ahead and died do not outlive the next start") {
  auto table = std::make_shared<FakeTable>();
  DesiredState wanted;
  Delta delta;
  set_service(wanted, delta, 1, numbers(1, kMany));
  CHECK(start(table)->prepare(wanted, delta.frontends).commits == 2);

  DesiredState other;
  Delta changed;
  set_service(other, changed, 2, numbers(4, kMany));
  for (const bool prepared : {true, false}) {
    auto copy = std::make_shared<FakeTable>(*table);
    auto backend = start(copy);
    if (prepared) {
      CHECK(backend->prepare(other, changed.frontends).commits == 2);
    }
    CHECK(backend->apply(other, changed).outcome);
    auto fresh = std::make_shared<FakeTable>();
    CHECK(start(fresh)->apply(other, {}).outcome);
    CHECK(contents(*copy) == contents(*fresh));
  }
}

TEST_CASE("endpoints that an earlier run wrote ahead of half of its frontends are found") {
  auto table = std::make_shared<FakeTable>();
  DesiredState wanted;
  Delta delta;
  set_service(wanted, delta, 1, numbers(1, kMany));
  set_service(wanted, delta, 2, numbers(4, kMany));
  auto dying = start(table);
  (void)dying->prepare(wanted, delta.frontends);
  auto unfinished = std::make_shared<FakeTable>(*table);
  CHECK(dying->apply(wanted, delta).outcome);
  // As if it had died when one of the two frontends was done.
  for (const SetId set : {SetId::ServiceIps, class_set(Place::Plain, class_bits(kMany))}) {
    auto& elements = unfinished->sets[static_cast<std::size_t>(set)];
    elements.insert(*table->sets[static_cast<std::size_t>(set)].begin());
  }

  set_service(wanted, delta, 2, {6});
  CHECK(start(unfinished)->apply(wanted, delta).outcome);
  auto fresh = std::make_shared<FakeTable>();
  CHECK(start(fresh)->apply(wanted, {}).outcome);
  CHECK(contents(*unfinished) == contents(*fresh));
}

TEST_CASE("a large map of endpoints is looked up, not listed") {
  auto table = std::make_shared<FakeTable>();
  DesiredState wanted;
  Delta delta;
  for (unsigned n = 0; n < NftBackend::kListedSlots / 4 + 1; ++n) {
    set_service(wanted, delta, n, {n, n + 1});
  }
  set_service(wanted, delta, 0, {0, 1, 2, 3, 4});
  CHECK(start(table)->apply(wanted, delta).outcome);
  const auto before = contents(*table);
  table->look_ups = 0;

  SECTION("a restart finds everything") {
    CHECK(start(table)->apply(wanted, delta).cost.commits == 0);
    CHECK(table->look_ups == static_cast<int>(NftBackend::kListedSlots / 4 + 1));
  }
  SECTION("an endpoint that somebody deleted meanwhile is put back") {
    table->sets[static_cast<std::size_t>(SetId::Endpoints)].erase(
        {encode_slot(frontend(0), 1), false});
    CHECK(start(table)->apply(wanted, delta).outcome);
    CHECK(contents(*table) == before);
  }
  SECTION("one of those that may be missing, with others behind it") {
    table->sets[static_cast<std::size_t>(SetId::Endpoints)].erase(
        {encode_slot(frontend(1), 0), false});
    CHECK(start(table)->apply(wanted, delta).outcome);
    CHECK(contents(*table) == before);
  }
}

TEST_CASE("what packets go by already is not touched before apply") {
  auto table = std::make_shared<FakeTable>();
  DesiredState wanted;
  Delta delta;
  set_service(wanted, delta, 1, {1, 2, 3});
  CHECK(start(table)->apply(wanted, delta).outcome);

  const int commits = table->commits;
  DesiredState half;
  set_service(half, delta, 1, numbers(1, kMany));
  auto backend = start(table);
  CHECK(backend->prepare(half, delta.frontends).commits == 0);
  CHECK(backend->apply(wanted, delta).cost.commits == 0);
  CHECK(table->commits == commits);
}

TEST_CASE("what cannot be written ahead is left to apply, which says why") {
  auto table = std::make_shared<FakeTable>();
  auto backend = start(table);
  DesiredState wanted;
  Delta delta;
  set_service(wanted, delta, 1, numbers(1, kMany));
  table->judge = [](const Transaction&) { return fail(Errc::Again, "busy"); };
  CHECK(backend->prepare(wanted, delta.frontends).commits == 0);
  CHECK_FALSE(backend->apply(wanted, delta).outcome);
  table->judge = nullptr;
  CHECK(backend->prepare(wanted, delta.frontends).commits == 0);  // once is enough
  CHECK(backend->apply(wanted, delta).outcome);
  CHECK(size_of(*table, SetId::Endpoints) == kMany);
}

TEST_CASE("a restart that finds nothing to change writes nothing") {
  auto table = std::make_shared<FakeTable>();
  DesiredState wanted;
  wanted.service_cidrs = {*net::parse_cidr("10.96.0.0/16"), *net::parse_cidr("255.255.0.0/16")};
  Delta delta;
  for (unsigned n = 0; n < 20; ++n) {
    set_service(wanted, delta, n, {n, n + 1, n + 2, n + 3, n + 4}, n % 2 == 0);
  }
  CHECK(start(table)->apply(wanted, delta).outcome);
  const int before = table->commits;
  const auto report = start(table)->apply(wanted, {});
  CHECK(report.outcome);
  CHECK(report.cost.commits == 0);
  CHECK(table->commits == before);
}

TEST_CASE("a restart while the kernel still grows its sets leaves nothing of a Service that went") {
  auto table = std::make_shared<FakeTable>();
  DesiredState wanted;
  Delta delta;
  for (unsigned n = 0; n < 3; ++n) {
    set_service(wanted, delta, n, {n, n + 1});
  }
  CHECK(start(table)->apply(wanted, delta).outcome);
  const auto before = contents(*table);
  table->grows = 2;
  CHECK(start(table)->apply(wanted, {}).cost.commits == 0);
  CHECK(contents(*table) == before);

  remove_service(wanted, delta, 2);
  table->grows = 1;
  CHECK(start(table)->apply(wanted, {}).outcome);
  CHECK(size_of(*table, SetId::ServiceIps) == 2);
}

TEST_CASE("what an earlier run left is repaired, not rewritten") {
  auto table = std::make_shared<FakeTable>();
  DesiredState wanted;
  Delta delta;
  set_service(wanted, delta, 1, {1, 2, 3});
  set_service(wanted, delta, 2, {4}, true);
  CHECK(start(table)->apply(wanted, delta).outcome);
  remove_service(wanted, delta, 2);  // while nobody ran
  set_service(wanted, delta, 3, {5});
  CHECK(start(table)->apply(wanted, {}).outcome);
  CHECK(table->program_writes == 1);

  auto fresh = std::make_shared<FakeTable>();
  CHECK(start(fresh)->apply(wanted, {}).outcome);
  CHECK(contents(*table) == contents(*fresh));
}

TEST_CASE("another program's table is replaced in one transaction, data and all") {
  auto table = std::make_shared<FakeTable>();
  DesiredState wanted;
  Delta delta;
  set_service(wanted, delta, 1, {1, 2, 3});
  CHECK(start(table)->apply(wanted, delta).outcome);
  const auto other = start(table, std::make_shared<Purges>(), {0x4000, true, {}});
  const int before = table->commits;
  CHECK(other->apply(wanted, {}).outcome);
  CHECK(table->commits == before + 1);
  CHECK(table->program_writes == 2);
  CHECK(size_of(*table, SetId::Endpoints) == 3);
}

TEST_CASE("a frontend that the kernel refuses is set aside and the rest goes through") {
  auto table = std::make_shared<FakeTable>();
  const KeyBytes bad = encode(frontend(7));
  bool refusing = true;
  table->judge = [&](const Transaction& transaction) -> Result<> {
    for (const Element& element :
         transaction.changes.additions[static_cast<std::size_t>(SetId::ServiceIps)]) {
      if (refusing && element.key == bad) {
        return fail(Errc::Invalid, "no", EINVAL);
      }
    }
    return {};
  };
  auto backend = start(table);
  DesiredState wanted;
  Delta delta;
  for (unsigned n = 0; n < 50; ++n) {
    set_service(wanted, delta, n, {n});
  }
  const auto report = backend->apply(wanted, delta);
  CHECK(report.outcome);
  REQUIRE(report.set_aside.size() == 1);
  CHECK(report.set_aside[0].frontend == frontend(7));
  CHECK(size_of(*table, SetId::ServiceIps) == 49);

  refusing = false;
  Delta retry;
  retry.frontends = {frontend(7)};
  const auto second = backend->apply(wanted, retry);
  CHECK(second.outcome);
  CHECK(second.accepted == std::vector{frontend(7)});
  CHECK(size_of(*table, SetId::ServiceIps) == 50);
}

TEST_CASE(
    "affinity brings chains and a map for a port, and its clients are purged with endpoints") {
  auto table = std::make_shared<FakeTable>();
  auto purges = std::make_shared<Purges>();
  auto backend = start(table, purges);
  DesiredState wanted;
  Delta delta;
  set_service(wanted, delta, 1, {1, 2}, true);
  CHECK(backend->apply(wanted, delta).outcome);
  CHECK(table->rules.at("sticky-10.96.0.1-tcp-80") == 1);
  CHECK(table->rules.at("remember-10.96.0.1-tcp-80-600s") == 1);
  CHECK(std::ranges::count(table->set_names, "affinity-10.96.0.1-tcp-80") == 1);

  SECTION("an endpoint that comes costs nobody their place") {
    purges->clear();
    Delta more;
    set_service(wanted, more, 1, {1, 2, 3}, true);
    CHECK(backend->apply(wanted, more).outcome);
    CHECK(purges->empty());
  }
  SECTION("clients of an endpoint that goes are purged") {
    purges->clear();
    Delta less;
    set_service(wanted, less, 1, {2}, true);
    CHECK(backend->apply(wanted, less).outcome);
    REQUIRE(purges->size() == 1);
    CHECK(purges->at(0).map == "affinity-10.96.0.1-tcp-80");
    CHECK(purges->at(0).allowed->size() == 1);
  }
  SECTION("nobody knows what went while nobody ran") {
    purges->clear();
    auto second = start(table, purges);
    const auto report = second->apply(wanted, {});
    CHECK(report.outcome);
    CHECK(report.cost.commits == 0);
    CHECK(purges->size() == 1);
  }
  SECTION("what nobody needs any more is collected later, not in the transaction that left it") {
    Delta gone;
    set_service(wanted, gone, 1, {1, 2}, false);
    const auto report = backend->apply(wanted, gone);
    CHECK(table->rules.contains("sticky-10.96.0.1-tcp-80"));
    REQUIRE(report.again_in);
    CHECK(*report.again_in <= AffinityUnits::kLinger);
  }
}

TEST_CASE("a table with a torn affinity chain is not trusted") {
  auto table = std::make_shared<FakeTable>();
  DesiredState wanted;
  Delta delta;
  set_service(wanted, delta, 1, {1, 2}, true);
  CHECK(start(table)->apply(wanted, delta).outcome);
  SECTION("a rule is gone") { table->rules["sticky-10.96.0.1-tcp-80"] = 0; }
  SECTION("the map is gone") { std::erase(table->set_names, "affinity-10.96.0.1-tcp-80"); }
  CHECK(start(table)->apply(wanted, {}).outcome);
  CHECK(table->program_writes == 2);
  CHECK(table->rules.at("sticky-10.96.0.1-tcp-80") == 1);
}

TEST_CASE("affinity's units: collected when idle for a while, kept when they are needed again") {
  AffinityUnits units;
  Affinity affinity;
  affinity.group = frontend(1);
  affinity.timeout = std::chrono::seconds(5);
  const Clock::time_point start_time{};
  const auto fill = [&] {
    std::pair<std::vector<Fragment>, Removal> out;
    units.fill(out.first, out.second);
    return out;
  };
  units.stage(affinity, 1);
  CHECK(fill().first.size() == 2);  // the memory, and what writes it
  units.discard();
  CHECK(fill().first.empty());  // the kernel did not take it
  units.stage(affinity, 1);
  units.commit(start_time);
  CHECK_FALSE(units.collection_due());

  units.stage(affinity, -1);
  units.commit(start_time);
  CHECK(units.collection_due() == start_time + AffinityUnits::kLinger);
  units.stage_collection(start_time);
  CHECK(fill().second.empty());
  units.discard();

  SECTION("needed again") {
    units.stage(affinity, 1);
    CHECK(fill().first.empty());  // all there
    units.commit(start_time);
    CHECK_FALSE(units.collection_due());
  }
  SECTION("collected") {
    units.stage_collection(start_time + AffinityUnits::kLinger);
    CHECK(fill().second.chains.size() == 2);
    CHECK(fill().second.sets == std::vector<std::string>{"affinity-10.96.0.1-tcp-80"});
    units.commit(start_time);
    CHECK_FALSE(units.collection_due());
    units.stage(affinity, 1);
    CHECK(fill().first.size() == 2);
  }
}

TEST_CASE("a failed transaction loses nothing and names what to retry") {
  auto table = std::make_shared<FakeTable>();
  auto backend = start(table);
  DesiredState wanted;
  Delta delta;
  set_service(wanted, delta, 1, {1});
  CHECK(backend->apply(wanted, delta).outcome);
  table->judge = [](const Transaction&) -> Result<> { return fail(Errc::Again, "busy", ENOMEM); };
  Delta change;
  set_service(wanted, change, 1, {1, 2});
  set_service(wanted, change, 2, {3});
  const auto failed = backend->apply(wanted, change);
  CHECK_FALSE(failed.outcome);
  CHECK(failed.retry.size() == 2);
  table->judge = nullptr;
  Delta retry;
  retry.frontends = failed.retry;
  CHECK(backend->apply(wanted, retry).outcome);
  auto fresh = std::make_shared<FakeTable>();
  CHECK(start(fresh)->apply(wanted, {}).outcome);
  CHECK(contents(*table) == contents(*fresh));
}

TEST_CASE("a table that somebody deleted or changed is read again and repaired") {
  auto table = std::make_shared<FakeTable>();
  auto backend = start(table);
  DesiredState wanted;
  Delta delta;
  set_service(wanted, delta, 1, {1, 2});
  set_service(wanted, delta, 2, {3});
  CHECK(backend->apply(wanted, delta).outcome);
  SECTION("deleted") { *table = FakeTable{}; }
  SECTION("an element is gone") { table->sets[static_cast<std::size_t>(SetId::Endpoints)].clear(); }
  Delta change;
  set_service(wanted, change, 1, {1});
  CHECK(backend->apply(wanted, change).outcome);
  auto fresh = std::make_shared<FakeTable>();
  CHECK(start(fresh)->apply(wanted, {}).outcome);
  CHECK(contents(*table) == contents(*fresh));
}

TEST_CASE("a hole in the slots that somebody tore is closed at the next start") {
  auto table = std::make_shared<FakeTable>();
  DesiredState wanted;
  Delta delta;
  set_service(wanted, delta, 1, {1, 2, 3, 4, 5});
  CHECK(start(table)->apply(wanted, delta).outcome);
  table->sets[static_cast<std::size_t>(SetId::Endpoints)].erase(
      {encode_slot(frontend(1), 1), false});
  CHECK(start(table)->apply(wanted, {}).outcome);
  auto fresh = std::make_shared<FakeTable>();
  CHECK(start(fresh)->apply(wanted, {}).outcome);
  CHECK(contents(*table) == contents(*fresh));
  CHECK(start(table)->apply(wanted, {}).cost.commits == 0);
}

TEST_CASE(
    "random changes, one by one, in bursts and over restarts, end where a fresh start begins") {
  std::mt19937 random(11);
  const auto below = [&](unsigned n) {
    return std::uniform_int_distribution<unsigned>(0, n - 1)(random);
  };
  auto table = std::make_shared<FakeTable>();
  auto backend = start(table);
  DesiredState wanted;
  Delta delta;
  for (int step = 0; step < 1000; ++step) {
    const unsigned n = below(30);
    if (below(6) == 0) {
      remove_service(wanted, delta, n);
    } else {
      std::vector<unsigned> endpoints(below(10));
      for (unsigned& e : endpoints) {
        e = below(40);
      }
      std::sort(endpoints.begin(), endpoints.end());
      endpoints.erase(std::unique(endpoints.begin(), endpoints.end()), endpoints.end());
      set_service(wanted, delta, n, endpoints, below(2) == 0);
    }
    if (below(3) == 0) {
      REQUIRE(backend->apply(wanted, delta).outcome);
      delta = {};
    }
    if (below(50) == 0) {
      backend = start(table);
    }
  }
  REQUIRE(backend->apply(wanted, delta).outcome);
  auto fresh = std::make_shared<FakeTable>();
  CHECK(start(fresh)->apply(wanted, {}).outcome);
  CHECK(contents(*table) == contents(*fresh));
  CHECK(table->program_writes == 1);
}

}  // namespace
}  // namespace shunt::backend::nft
