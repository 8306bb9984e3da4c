#include "backend/conntrack/reconciler.h"

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <string>
#include <thread>

namespace shunt::backend::conntrack {
namespace {

using net::Family;

// A table in memory, with the troubles of a real one on request.
struct FakeTable {
  std::mutex mutex;
  std::condition_variable scan_started;
  std::map<Family, std::vector<Flow>> flows;
  int scans = 0;
  std::size_t largest_removal = 0;
  int scan_failures = 0;     // to come
  int interruptions = 0;     // to come; half of the table is told then
  int removal_failures = 0;  // to come
  bool gate_closed = false;  // scans wait in front of it
};

class FakeFlowTable : public FlowTable {
 public:
  explicit FakeFlowTable(FakeTable& table) : table_(table) {}

  Result<> scan(Family family, Which which, const std::function<void(const Flow&)>& each) override {
    std::vector<Flow> told;
    bool interrupted = false;
    {
      std::unique_lock lock(table_.mutex);
      ++table_.scans;
      table_.scan_started.notify_all();
      table_.scan_started.wait(lock, [&] { return !table_.gate_closed; });
      if (table_.scan_failures > 0) {
        --table_.scan_failures;
        return fail(Errc::Again, "out of memory", ENOMEM);
      }
      told = table_.flows[family];
      if (which == Which::Udp) {
        std::erase_if(told, [](const Flow& flow) { return flow.protocol != 17; });
      }
      if (table_.interruptions > 0) {
        --table_.interruptions;
        interrupted = true;
        told.resize(told.size() / 2);
      }
    }
    for (const Flow& flow : told) {
      each(flow);
    }
    return interrupted ? Result<>(fail(Errc::Again, "changed", EINTR)) : Result<>();
  }

  Removal remove(Family family, std::span<const Flow> flows) override {
    const std::lock_guard lock(table_.mutex);
    table_.largest_removal = std::max(table_.largest_removal, flows.size());
    if (table_.removal_failures > 0) {
      --table_.removal_failures;
      return {0, fail(Errc::Again, "busy", EBUSY)};
    }
    Removal out;
    for (const Flow& flow : flows) {
      out.removed += std::erase(table_.flows[family], flow);
    }
    return out;
  }

  Result<LocalAddresses> local_addresses() override { return LocalAddresses{}; }

 private:
  FakeTable& table_;
};

net::SocketAddress address(const std::string& text) {
  return net::parse_socket_address(text).value();
}

Flow flow(unsigned client, const std::string& to, const std::string& went_to) {
  const bool v6 = to[0] == '[';
  net::SocketAddress from = address(v6 ? "[fd64::99]:1" : "10.64.0.99:1");
  from.port = net::Port{static_cast<std::uint16_t>(client)};
  return {17, {from, address(to)}, {address(went_to), from}, true, 0, client};
}

ServingChange serving(const std::string& frontend, const std::vector<std::string>& endpoints) {
  desired::EndpointList list;
  for (const std::string& text : endpoints) {
    list.push_back(address(text));
  }
  const net::SocketAddress at = address(frontend);
  return {
      {at.ip, net::Protocol::Udp, at.port},
      std::make_shared<const desired::EndpointList>(std::move(list))};
}

struct Fixture {
  Fixture() { reconciler.start(); }
  void settle() {
    while (!reconciler.idle()) {
      std::this_thread::sleep_for(Millis{1});
    }
  }
  std::vector<Flow> left(Family family = Family::IPv4) {
    const std::lock_guard lock(table.mutex);
    return table.flows[family];
  }
  int scans() {
    const std::lock_guard lock(table.mutex);
    return table.scans;
  }
  void wait_for_scan(int number) {
    std::unique_lock lock(table.mutex);
    table.scan_started.wait(lock, [&] { return table.scans >= number; });
  }
  void set_gate(bool closed) {
    const std::lock_guard lock(table.mutex);
    table.gate_closed = closed;
    table.scan_started.notify_all();
  }

  FakeTable table;
  Reconciler reconciler{std::make_unique<FakeFlowTable>(table), [] { return 0.0; }};
};

const Flow kKept = flow(1, "10.96.0.1:53", "10.64.0.1:53");
const Flow kStale = flow(2, "10.96.0.1:53", "10.64.0.2:53");

TEST_CASE("a change removes the flows it makes stale, and no others") {
  Fixture at;
  at.table.flows[Family::IPv4] = {kKept, kStale};
  at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.1:53"})});
  CHECK_FALSE(at.reconciler.idle());
  at.settle();
  CHECK(at.left() == std::vector{kKept});
  const Counters counters = at.reconciler.counters(Family::IPv4);
  CHECK(counters.passes == 1);
  CHECK(counters.scanned == 2);
  CHECK(counters.deleted == 1);
  CHECK(counters.failures == 0);
}

TEST_CASE("what was handed over once is remembered in later passes") {
  Fixture at;
  at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.1:53"})});
  at.settle();
  at.table.flows[Family::IPv4] = {kKept, kStale};
  at.reconciler.changed(Family::IPv4, {serving("10.96.0.2:53", {"10.64.0.1:53"})});
  at.settle();
  CHECK(at.left() == std::vector{kKept});
  at.table.flows[Family::IPv4] = {kKept, kStale};
  at.reconciler.changed(Family::IPv4, {{serving("10.96.0.1:53", {}).frontend, std::nullopt}});
  at.settle();
  CHECK(at.left().size() == 2);
}

TEST_CASE("only the families that changed are looked at") {
  Fixture at;
  const Flow stale6 = flow(3, "[fdc0::1]:53", "[fd64::2]:53");
  at.table.flows[Family::IPv4] = {kStale};
  at.table.flows[Family::IPv6] = {stale6};
  at.reconciler.changed(Family::IPv6, {serving("[fdc0::1]:53", {"[fd64::1]:53"})});
  at.settle();
  CHECK(at.left(Family::IPv6).empty());
  CHECK(at.left(Family::IPv4).size() == 1);
  CHECK(at.reconciler.counters(Family::IPv4).passes == 0);
}

TEST_CASE("changes during a pass make one more pass, which has the last word of each") {
  Fixture at;
  at.set_gate(true);
  at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.1:53"})});
  at.wait_for_scan(1);
  for (int i = 0; i < 100; ++i) {
    at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.9:53"})});
  }
  at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.2:53"})});
  at.table.flows[Family::IPv4] = {kKept, kStale};
  CHECK_FALSE(at.reconciler.idle());
  at.set_gate(false);
  at.settle();
  CHECK(at.scans() == 2);
  CHECK(at.left() == std::vector{kStale});
}

TEST_CASE("a pass judges by what it heard since it began") {
  Fixture at;
  at.set_gate(true);
  at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.1:53"})});
  at.wait_for_scan(1);
  const Flow fresh = kStale;  // 10.64.0.2 serves again, and has its first client
  at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.1:53", "10.64.0.2:53"})});
  at.table.flows[Family::IPv4] = {fresh};
  at.set_gate(false);
  at.settle();
  CHECK(at.left() == std::vector{fresh});
}

TEST_CASE("while the rules of a frontend change its flows stay, and others go") {
  Fixture at;
  const Flow of_another = flow(7, "10.96.0.2:53", "10.64.0.2:53");
  at.set_gate(true);
  at.reconciler.changed(
      Family::IPv4,
      {serving("10.96.0.1:53", {"10.64.0.1:53"}), serving("10.96.0.2:53", {"10.64.0.1:53"})});
  at.wait_for_scan(1);
  at.reconciler.changing(Family::IPv4, {serving("10.96.0.1:53", {}).frontend});
  at.table.flows[Family::IPv4] = {kStale, of_another};
  at.set_gate(false);
  at.settle();
  CHECK(at.left() == std::vector{kStale});
  SECTION("the change made the flow's endpoint serve") {
    at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.2:53"})});
    at.settle();
    CHECK(at.left() == std::vector{kStale});
  }
  SECTION("it did not") {
    at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.1:53"})});
    at.settle();
    CHECK(at.left().empty());
  }
}

TEST_CASE("while a NodePort changes, a flow to any address with its port stays") {
  Fixture at;
  const Flow left_over = flow(7, "10.80.0.10:30053", "10.64.0.2:53");
  at.table.flows[Family::IPv4] = {left_over};
  at.reconciler.changing(Family::IPv4, {serving("0.0.0.0:30053", {}).frontend});
  at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.1:53"})});
  at.settle();
  CHECK(at.left().size() == 1);
  at.reconciler.changed(Family::IPv4, {serving("0.0.0.0:30053", {"10.64.0.1:53"})});
  at.settle();
  CHECK(at.left().empty());
}

TEST_CASE("a change that was taken back before anybody looked is looked for all the same") {
  Fixture at;
  at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.1:53"})});
  at.settle();
  at.table.flows[Family::IPv4] = {kStale};  // of the short time that 10.64.0.2 served
  at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.1:53"})});
  at.settle();
  CHECK(at.left().empty());
}

TEST_CASE("many stale flows are removed in batches of bounded size") {
  Fixture at;
  for (unsigned client = 1; client <= 5000; ++client) {
    at.table.flows[Family::IPv4].push_back(flow(client, "10.96.0.1:53", "10.64.0.2:53"));
  }
  at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.1:53"})});
  at.settle();
  CHECK(at.left().empty());
  CHECK(at.reconciler.counters(Family::IPv4).deleted == 5000);
  CHECK(at.table.largest_removal > 1);
  CHECK(at.table.largest_removal < 1000);
}

TEST_CASE("a table that changes while it is listed is listed again, five times at most") {
  Fixture at;
  at.table.flows[Family::IPv4] = {kKept, kStale};  // the stale one is in the half not told
  SECTION("it calms down") {
    at.table.interruptions = 4;
    at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.1:53"})});
    at.settle();
    CHECK(at.left() == std::vector{kKept});
    CHECK(at.scans() == 5);
  }
  SECTION("it does not") {
    at.table.interruptions = 1000;
    at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.2:53"})});
    at.settle();
    CHECK(at.scans() == 5);
    CHECK(at.left() == std::vector{kStale});  // what was told was worked with
    CHECK(at.reconciler.counters(Family::IPv4).failures == 0);
  }
}

TEST_CASE("a failed pass is tried again on its own, and until then there is work left") {
  Fixture at;
  at.table.flows[Family::IPv4] = {kKept, kStale};
  SECTION("listing fails") { at.table.scan_failures = 2; }
  SECTION("removing fails") { at.table.removal_failures = 2; }
  at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.1:53"})});
  at.settle();
  CHECK(at.left() == std::vector{kKept});
  CHECK(at.reconciler.counters(Family::IPv4).failures == 2);
  CHECK(at.reconciler.counters(Family::IPv4).deleted == 1);
}

using Keys = std::vector<desired::FrontendKey>;
std::shared_ptr<const Keys> web_frontend() {
  const net::SocketAddress at = address("10.96.0.1:80");
  return std::make_shared<const Keys>(Keys{{at.ip, net::Protocol::Tcp, at.port}});
}
Flow syn(unsigned client, const std::string& to, const std::string& went_to) {
  Flow out = flow(client, to, went_to);
  out.protocol = 6;
  out.answered = false;
  return out;
}
const Flow kLost = syn(1, "10.96.0.1:80", "10.96.0.1:80");
const Flow kOnItsWay = syn(2, "10.96.0.1:80", "10.64.0.1:8080");

TEST_CASE("untranslated flows are removed once, of any protocol, with UDP frontends and without") {
  Fixture at;
  at.table.flows[Family::IPv4] = {kLost, kOnItsWay, kKept, kStale};
  std::vector<Flow> want{kOnItsWay, kKept, kStale};
  SECTION("no UDP frontends") {}
  SECTION("UDP frontends") {
    at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.1:53"})});
    at.settle();
    CHECK(at.left() == std::vector{kLost, kOnItsWay, kKept});
    want = {kOnItsWay, kKept};
  }
  at.reconciler.untranslated(Family::IPv4, web_frontend());
  CHECK_FALSE(at.reconciler.idle());
  at.settle();
  CHECK(at.left() == want);

  // Nobody asked again.
  at.table.flows[Family::IPv4] = {kLost};
  at.reconciler.changed(Family::IPv4, {serving("10.96.0.2:53", {"10.64.0.1:53"})});
  at.settle();
  CHECK(at.left() == std::vector{kLost});
}

TEST_CASE("a pass for untranslated flows that failed is tried again") {
  Fixture at;
  at.table.flows[Family::IPv4] = {kOnItsWay, kLost};
  SECTION("listing fails") { at.table.scan_failures = 2; }
  SECTION("removing fails") { at.table.removal_failures = 2; }
  at.reconciler.untranslated(Family::IPv4, web_frontend());
  at.settle();
  CHECK(at.left() == std::vector{kOnItsWay});
  CHECK(at.reconciler.counters(Family::IPv4).failures == 2);
}

TEST_CASE("a table that changes while untranslated flows are looked for is listed again") {
  Fixture at;
  at.table.flows[Family::IPv4] = {kOnItsWay, kLost};  // the lost one is in the half not told
  at.table.interruptions = 4;
  at.reconciler.untranslated(Family::IPv4, web_frontend());
  at.settle();
  CHECK(at.left() == std::vector{kOnItsWay});
}

TEST_CASE("word of a second hole during a pass makes another pass") {
  Fixture at;
  at.set_gate(true);
  at.reconciler.untranslated(Family::IPv4, web_frontend());
  at.wait_for_scan(1);
  at.reconciler.untranslated(Family::IPv4, web_frontend());
  at.set_gate(false);
  at.settle();
  CHECK(at.scans() == 2);
}

TEST_CASE("without UDP frontends nobody looks") {
  Fixture at;
  at.table.flows[Family::IPv4] = {kStale};
  at.reconciler.changed(Family::IPv4, {});
  at.settle();
  CHECK(at.scans() == 0);
}

TEST_CASE("it stops in the middle of its work, and without any") {
  Fixture at;
  SECTION("without any") {}
  SECTION("while it waits for another try") {
    at.table.scan_failures = 1000;
    at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.1:53"})});
    at.wait_for_scan(2);
  }
  at.reconciler.stop();
  at.reconciler.stop();
  const int scans = at.scans();
  at.reconciler.changed(Family::IPv4, {serving("10.96.0.1:53", {"10.64.0.1:53"})});
  CHECK(at.scans() == scans);
}

}  // namespace
}  // namespace shunt::backend::conntrack
