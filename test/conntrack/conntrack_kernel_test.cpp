// Stale flows in a real table: entries are put in as they are, a change is handed over, and what
// is left is compared.

#include <sched.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>

#include "backend/conntrack/reconciler.h"
#include "backend/conntrack/wire.h"
#include "conntrack/tracked.h"

namespace shunt::backend::conntrack {
namespace {

using net::Family;
using test::TrackedFlows;

constexpr std::uint8_t kTcp = 6;
constexpr std::uint8_t kUdp = 17;
constexpr std::uint8_t kSctp = 132;

net::SocketAddress address(const std::string& text) {
  return net::parse_socket_address(text).value();
}

Flow flow(
    const std::string& client,
    const std::string& to,
    const std::string& went_to,
    std::uint8_t protocol = kUdp) {
  return {protocol, {address(client), address(to)}, {address(went_to), address(client)}, true};
}

ServingChange serving(const std::string& frontend, const std::vector<std::string>& endpoints) {
  desired::EndpointList list;
  for (const std::string& text : endpoints) {
    list.push_back(address(text));
  }
  std::sort(list.begin(), list.end());
  const net::SocketAddress at = address(frontend);
  return {
      {at.ip, net::Protocol::Udp, at.port},
      std::make_shared<const desired::EndpointList>(std::move(list))};
}

// A node of its own that holds 10.80.0.10 and fd80::10. The order of the members matters: their
// sockets and threads stay in the namespace that they were made in.
class Node {
 public:
  Node() {
    if (::geteuid() != 0) {
      SKIP("needs root");
    }
    REQUIRE(::unshare(CLONE_NEWNET) == 0);
    REQUIRE(
        std::system(  // NOLINT(bugprone-command-processor,cert-env33-c): a constant command
            "ip addr add 10.80.0.10/32 dev lo && ip -6 addr add fd80::10/128 dev lo nodad") == 0);
    tracked = std::make_unique<TrackedFlows>();
    auto opened = KernelFlowTable::open();
    REQUIRE(opened);
    reconciler = std::make_unique<Reconciler>(std::move(*opened), [] { return 0.0; });
    reconciler->start();
  }
  void change(Family family, std::vector<ServingChange> changes) const {
    reconciler->changed(family, std::move(changes));
    while (!reconciler->idle()) {
      std::this_thread::sleep_for(Millis{1});
    }
  }

  std::unique_ptr<TrackedFlows> tracked;
  std::unique_ptr<Reconciler> reconciler;
};

TEST_CASE("only stale UDP flows go: near twins and other protocols stay, in both families") {
  const Node node;
  const std::vector<Flow> stale{
      flow("198.51.100.7:1000", "10.112.0.1:53", "10.64.0.2:5353"),
      flow("198.51.100.7:1001", "10.112.0.1:53", "10.112.0.1:53"),
      flow("198.51.100.7:1002", "10.112.0.1:53", "10.64.0.1:5354"),
      flow("198.51.100.7:1003", "10.80.0.10:30053", "10.64.0.2:5353"),
      flow("198.51.100.7:1004", "10.80.0.10:30053", "10.80.0.10:30053")};
  const std::vector<Flow> kept{
      flow("198.51.100.7:2000", "10.112.0.1:53", "10.64.0.1:5353"),
      flow("198.51.100.9:1000", "10.112.0.2:53", "10.64.0.2:5353"),
      flow("198.51.100.10:1000", "10.112.0.1:54", "10.64.0.2:5353"),
      flow("198.51.100.8:1000", "10.112.0.1:53", "10.64.0.1:5353"),
      flow("198.51.100.11:1000", "10.64.0.2:5353", "10.64.0.2:5353"),
      flow("198.51.100.7:1004", "10.80.0.11:30053", "10.80.0.11:30053"),
      flow("198.51.100.7:1000", "10.112.0.1:53", "10.64.0.2:5353", kTcp),
      flow("198.51.100.7:1000", "10.112.0.1:53", "10.64.0.2:5353", kSctp)};
  const std::vector<Flow> stale6{
      flow("[2001:db8:e::7]:1000", "[fdc0::1]:53", "[fd64::2]:5353"),
      flow("[2001:db8:e::7]:1003", "[fd80::10]:30053", "[fd64::2]:5353"),
      flow("[2001:db8:e::7]:1004", "[fd80::10]:30053", "[fd80::10]:30053")};
  const std::vector<Flow> kept6{
      flow("[2001:db8:e::7]:2000", "[fdc0::1]:53", "[fd64::1]:5353"),
      flow("[2001:db8:e::9]:1000", "[fdc0::2]:53", "[fd64::2]:5353"),
      flow("[2001:db8:e::7]:1000", "[fdc0::1]:53", "[fd64::2]:5353", kTcp)};
  for (const auto& flows : {stale, kept, stale6, kept6}) {
    node.tracked->insert(flows);
  }
  const std::multiset<Flow> all6 = node.tracked->all(Family::IPv6);
  REQUIRE(node.tracked->all(Family::IPv4).size() == stale.size() + kept.size());
  REQUIRE(all6.size() == stale6.size() + kept6.size());

  node.change(
      Family::IPv4,
      {serving("10.112.0.1:53", {"10.64.0.1:5353"}), serving("0.0.0.0:30053", {"10.64.0.1:5353"})});
  CHECK(node.tracked->all(Family::IPv4) == std::multiset<Flow>(kept.begin(), kept.end()));
  CHECK(node.reconciler->counters(Family::IPv4).deleted == stale.size());
  CHECK(node.tracked->all(Family::IPv6) == all6);

  node.change(
      Family::IPv6,
      {serving("[fdc0::1]:53", {"[fd64::1]:5353"}), serving("[::]:30053", {"[fd64::1]:5353"})});
  CHECK(node.tracked->all(Family::IPv6) == std::multiset<Flow>(kept6.begin(), kept6.end()));
  CHECK(node.reconciler->counters(Family::IPv6).deleted == stale6.size());
  CHECK(node.tracked->all(Family::IPv4) == std::multiset<Flow>(kept.begin(), kept.end()));
}

TEST_CASE("a Service without endpoints keeps its answered flows and loses the others") {
  const Node node;
  const Flow answered = flow("198.51.100.7:1000", "10.112.0.1:53", "10.64.0.1:5353");
  Flow unanswered = flow("198.51.100.7:1001", "10.112.0.1:53", "10.64.0.1:5353");
  unanswered.answered = false;
  node.tracked->insert(std::vector{answered, unanswered});
  node.change(Family::IPv4, {serving("10.112.0.1:53", {})});
  CHECK(node.tracked->all(Family::IPv4) == std::multiset{answered});
}

TEST_CASE("5 000 stale flows among as many others go in one pass") {
  const Node node;
  std::vector<Flow> flows;
  std::multiset<Flow> kept;
  for (unsigned n = 0; n < 10'000; ++n) {
    const std::string client =
        "198.51.100." + std::to_string(n / 1000) + ":" + std::to_string(10'000 + n);
    const char* const endpoint = n % 2 == 0 ? "10.64.0.1:5353" : "10.64.0.2:5353";
    flows.push_back(flow(client, "10.112.0.1:53", endpoint));
    if (n % 2 == 0) {
      kept.insert(flows.back());
    }
  }
  node.tracked->insert(flows);
  node.change(Family::IPv4, {serving("10.112.0.1:53", {"10.64.0.1:5353"})});
  const Counters counters = node.reconciler->counters(Family::IPv4);
  CHECK(counters.deleted == 5000);
  CHECK(counters.passes == 1);
  CHECK(counters.scanned >= 10'000);
  CHECK(node.tracked->all(Family::IPv4) == kept);
}

TEST_CASE("an entry of one zone is not taken for its twin of another") {
  const Node node;
  const Flow kept = flow("198.51.100.7:1000", "10.112.0.1:53", "10.64.0.1:5353");
  Flow stale = flow("198.51.100.7:1000", "10.112.0.1:53", "10.64.0.2:5353");
  stale.zone = 7;
  node.tracked->insert(std::vector{kept, stale});
  node.change(Family::IPv4, {serving("10.112.0.1:53", {"10.64.0.1:5353"})});
  CHECK(node.tracked->all(Family::IPv4) == std::multiset{kept});
  node.change(Family::IPv4, {serving("10.112.0.1:53", {"10.64.0.2:5353"})});
  CHECK(node.tracked->all(Family::IPv4).empty());
}

TEST_CASE("an entry that took the place of the judged one is left alone") {
  const Node node;
  node.tracked->insert(std::vector{flow("198.51.100.7:1", "10.112.0.1:53", "10.64.0.1:5353")});
  auto table = KernelFlowTable::open();
  REQUIRE(table);
  std::vector<Flow> told;
  REQUIRE((*table)->scan(
      Family::IPv4, FlowTable::Which::Udp, [&](const Flow& one) { told.push_back(one); }));
  REQUIRE(told.size() == 1);
  std::vector<Flow> judged = told;
  judged.front().id ^= 1U;
  FlowTable::Removal removal = (*table)->remove(Family::IPv4, judged);
  CHECK(removal.outcome);
  CHECK(removal.removed == 0);
  CHECK(node.tracked->all(Family::IPv4).size() == 1);
  removal = (*table)->remove(Family::IPv4, told);
  CHECK(removal.outcome);
  CHECK(removal.removed == 1);
  CHECK(node.tracked->all(Family::IPv4).empty());
}

TEST_CASE("the kernel tells UDP flows only: the rest of the table costs little") {
  // Linux 5.8 and newer; the back end does without where it must.
  const Node node;
  const Flow udp = flow("198.51.100.7:1", "10.112.0.1:53", "10.64.0.1:5353");
  const Flow tcp = flow("198.51.100.7:1", "10.112.0.1:53", "10.64.0.1:5353", kTcp);
  node.tracked->insert(std::vector{udp, tcp});
  node.change(Family::IPv4, {serving("10.112.0.1:53", {"10.64.0.1:5353"})});
  CHECK(node.reconciler->counters(Family::IPv4).scanned == 1);
}

TEST_CASE("removing nothing empties nothing") {
  const Node node;
  node.tracked->insert(std::vector{flow("198.51.100.7:1", "10.112.0.1:53", "10.64.0.1:5353")});
  auto table = KernelFlowTable::open();
  REQUIRE(table);
  CHECK((*table)->remove(Family::IPv4, {}).outcome);
  CHECK(node.tracked->all(Family::IPv4).size() == 1);
}

}  // namespace
}  // namespace shunt::backend::conntrack
