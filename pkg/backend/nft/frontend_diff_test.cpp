#include "backend/nft/frontend_diff.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <random>
#include <set>

#include "backend/nft/affinity.h"
#include "backend/nft/keys.h"

namespace shunt::backend::nft {
namespace {

using desired::Fate;
using desired::FrontendKey;
using desired::FrontendPlan;

FrontendKey frontend() { return {*net::parse_ip("10.96.0.10"), net::Protocol::Tcp, net::Port{80}}; }

net::SocketAddress endpoint(unsigned n) {
  net::IpAddress ip = *net::parse_ip("10.64.0.0");
  ip.bytes[2] = static_cast<std::uint8_t>(n >> 8);
  ip.bytes[3] = static_cast<std::uint8_t>(n);
  return {ip, net::Port{8080}};
}

FrontendPlan balance(const std::set<unsigned>& endpoints) {
  desired::EndpointList list;
  for (const unsigned n : endpoints) {
    list.push_back(endpoint(n));
  }
  std::sort(list.begin(), list.end());
  FrontendPlan plan;
  plan.service = "ns/svc:http";
  plan.fate = Fate::Balance;
  plan.endpoints = std::make_shared<const desired::EndpointList>(std::move(list));
  return plan;
}

FrontendState state_of(const FrontendPlan& plan) {
  ElementChanges ignored;
  return diff_frontend(frontend(), {}, &plan, ignored);
}

std::size_t additions(const ElementChanges& changes, SetId set) {
  return changes.additions[static_cast<std::size_t>(set)].size();
}
std::size_t deletions(const ElementChanges& changes, SetId set) {
  return changes.deletions[static_cast<std::size_t>(set)].size();
}

TEST_CASE("a frontend sits in the class of the next power of two, four at least") {
  CHECK(class_bits(1) == 2);
  CHECK(class_bits(4) == 2);
  CHECK(class_bits(5) == 3);
  CHECK(class_bits(8) == 3);
  CHECK(class_bits(9) == 4);
  CHECK(class_bits(65536) == 16);
}

TEST_CASE("an endpoint that comes takes the next slot") {
  ElementChanges changes;
  const FrontendPlan wanted = balance({1, 2, 3});
  const auto next = diff_frontend(frontend(), state_of(balance({1, 2})), &wanted, changes);
  CHECK(next.endpoints.slots().size() == 3);
  CHECK(changes.count == 1);
  CHECK(additions(changes, SetId::Endpoints) == 1);
}

TEST_CASE("an endpoint that goes is replaced by the last slot's") {
  const FrontendPlan wanted = balance({2, 3});
  ElementChanges changes;
  const auto next = diff_frontend(frontend(), state_of(balance({1, 2, 3})), &wanted, changes);
  CHECK(*next.endpoints.list == std::vector{endpoint(3), endpoint(2)});
  CHECK(
      deletions(changes, SetId::Endpoints) == 2);  // slot 0 before it is refilled, and the last one
  CHECK(additions(changes, SetId::Endpoints) == 1);
  CHECK(changes.count == 3);
}

TEST_CASE("an endpoint that takes another's place costs one slot") {
  const FrontendPlan wanted = balance({1, 9, 3});
  ElementChanges changes;
  const auto next = diff_frontend(frontend(), state_of(balance({1, 2, 3})), &wanted, changes);
  CHECK(*next.endpoints.list == std::vector{endpoint(1), endpoint(9), endpoint(3)});
  CHECK(changes.count == 2);
}

TEST_CASE("crossing a class costs two more elements") {
  const FrontendPlan wanted = balance({1, 2, 3, 4, 5});
  ElementChanges changes;
  diff_frontend(frontend(), state_of(balance({1, 2, 3, 4})), &wanted, changes);
  CHECK(additions(changes, class_set(Place::Plain, 3)) == 1);
  CHECK(deletions(changes, class_set(Place::Plain, 2)) == 1);
  CHECK(changes.count == 3);
}

TEST_CASE("a frontend without endpoints keeps its place and is refused or dropped") {
  for (const Fate fate : {Fate::Refuse, Fate::Drop}) {
    FrontendPlan none = balance({});
    none.fate = fate;
    none.endpoints = nullptr;
    ElementChanges changes;
    const auto next = diff_frontend(frontend(), state_of(balance({1})), &none, changes);
    CHECK(next.is(Membership::Service));
    CHECK(next.is(Membership::Refused) == (fate == Fate::Refuse));
    CHECK(next.is(Membership::Dropped) == (fate == Fate::Drop));
    CHECK(next.endpoints.empty());
  }
}

TEST_CASE("a frontend that another Service takes over gets that Service's name") {
  FrontendPlan other = balance({1});
  other.service = "ns/other:http";
  ElementChanges changes;
  diff_frontend(frontend(), state_of(balance({1})), &other, changes);
  CHECK(changes.count == 2);
  CHECK(
      changes.additions[static_cast<std::size_t>(SetId::ServiceIps)].at(0).text == "ns/other:http");
}

TEST_CASE("a name cannot break the listing") {
  CHECK(frontend_comment("ns/web:http") == "ns/web:http");
  CHECK(frontend_comment("ns/a\"b\nc\\d e\x7f\xc3\xa9") == "ns/a?b?c?d?e???");
}

TEST_CASE("a comment can never be longer than nft can read back") {
  FrontendPlan plan = balance({1});
  plan.service = std::string(500, 'x');
  ElementChanges changes;
  diff_frontend(frontend(), {}, &plan, changes);
  CHECK(changes.additions[static_cast<std::size_t>(SetId::ServiceIps)].at(0).text.size() == 127);
}

TEST_CASE("a NodePort is kept by its number, beside the frontends with addresses") {
  const FrontendKey node_port =
      desired::node_port_key(net::Family::IPv4, net::Protocol::Tcp, net::Port{30080});
  FrontendPlan plan = balance({1});
  plan.reach = desired::Reach::External;
  ElementChanges changes;
  diff_frontend(node_port, {}, &plan, changes);
  CHECK(changes.count == 4);
  CHECK(additions(changes, SetId::NodePortEndpoints) == 1);
  CHECK(additions(changes, SetId::ExternalNodePorts) == 1);
  CHECK(additions(changes, class_set(Place::NodePort, 2)) == 1);
  REQUIRE(additions(changes, SetId::ServiceNodePorts) == 1);
  const Element& element = changes.additions[static_cast<std::size_t>(SetId::ServiceNodePorts)][0];
  CHECK(element.key.size == 8);  // l4proto . port, no address
}

TEST_CASE("policy Local for outsiders: two lists, and dropped when the local one is empty") {
  FrontendPlan plan = balance({1, 2});
  plan.reach = desired::Reach::ExternalLocal;
  plan.local_endpoints = balance({1}).endpoints;
  ElementChanges changes;
  const FrontendState state = diff_frontend(frontend(), {}, &plan, changes);
  CHECK(additions(changes, SetId::Endpoints) == 2);
  CHECK(additions(changes, SetId::LocalEndpoints) == 1);
  CHECK(additions(changes, class_set(Place::Local, 2)) == 1);
  CHECK(additions(changes, SetId::ExternalLocalIps) == 1);
  CHECK(additions(changes, SetId::DroppedIps) == 0);

  plan.local_endpoints = nullptr;
  plan.fate = Fate::Drop;
  ElementChanges lost;
  diff_frontend(frontend(), state, &plan, lost);
  CHECK(lost.count == 3);
  CHECK(deletions(lost, SetId::LocalEndpoints) == 1);
  CHECK(deletions(lost, class_set(Place::Local, 2)) == 1);
  CHECK(additions(lost, SetId::DroppedIps) == 1);
}

TEST_CASE("a change of source ranges writes the ranges that differ") {
  const auto restricted = [](const std::vector<const char*>& ranges) {
    FrontendPlan plan = balance({1});
    plan.reach = desired::Reach::External;
    std::vector<net::Cidr> list;
    list.reserve(ranges.size());
    for (const char* range : ranges) {
      list.push_back(*net::parse_cidr(range));
    }
    plan.sources = std::make_shared<const std::vector<net::Cidr>>(std::move(list));
    return plan;
  };
  // Neighbours become one interval: the kernel takes no two that touch.
  const FrontendPlan before = restricted({"10.0.0.0/25", "10.0.0.128/25", "192.0.2.0/24"});
  ElementChanges changes;
  const FrontendState state = diff_frontend(frontend(), {}, &before, changes);
  CHECK(additions(changes, SetId::AllowedSources) == 2);
  CHECK(additions(changes, SetId::RestrictedIps) == 1);

  const FrontendPlan after = restricted({"10.0.0.0/24", "198.51.100.0/24"});
  ElementChanges changed;
  const FrontendState next = diff_frontend(frontend(), state, &after, changed);
  CHECK(changed.count == 2);
  CHECK(additions(changed, SetId::AllowedSources) == 1);
  CHECK(deletions(changed, SetId::AllowedSources) == 1);

  const FrontendPlan open = balance({1});
  ElementChanges opened;
  diff_frontend(frontend(), next, &open, opened);
  CHECK(deletions(opened, SetId::AllowedSources) == 2);
  CHECK(deletions(opened, SetId::RestrictedIps) == 1);
}

TEST_CASE("a frontend with affinity leads to the memory of its service port") {
  FrontendPlan plan = balance({1, 2});
  plan.affinity.emplace();
  plan.affinity->timeout = std::chrono::seconds(600);
  plan.affinity->group = frontend();
  ElementChanges changes;
  const FrontendState state = diff_frontend(frontend(), {}, &plan, changes);
  REQUIRE(additions(changes, SetId::StickyIps) == 1);
  CHECK(
      changes.additions[static_cast<std::size_t>(SetId::StickyIps)][0].text ==
      "sticky-10.96.0.10-tcp-80");
  REQUIRE(additions(changes, SetId::RememberIps) == 1);
  CHECK(
      changes.additions[static_cast<std::size_t>(SetId::RememberIps)][0].text ==
      "remember-10.96.0.10-tcp-80-600s");

  SECTION("another timeout: another chain remembers, the memory stays") {
    plan.affinity->timeout = std::chrono::seconds(60);
    ElementChanges changed;
    diff_frontend(frontend(), state, &plan, changed);
    CHECK(changed.count == 2);
    CHECK(additions(changed, SetId::RememberIps) == 1);
  }
  SECTION("without endpoints nobody is led anywhere") {
    plan.endpoints = nullptr;
    plan.fate = Fate::Refuse;
    ElementChanges changed;
    diff_frontend(frontend(), state, &plan, changed);
    CHECK(deletions(changed, SetId::StickyIps) == 1);
    CHECK(deletions(changed, SetId::RememberIps) == 1);
  }
}

TEST_CASE("in IPv6 what is remembered is an address, if all endpoints have one port") {
  FrontendPlan plan;
  plan.affinity.emplace();
  plan.affinity->timeout = std::chrono::seconds(60);
  plan.affinity->group = {*net::parse_ip("fd00::1"), net::Protocol::Tcp, net::Port{80}};
  const auto list = [](const std::vector<const char*>& texts) {
    desired::EndpointList out;
    out.reserve(texts.size());
    for (const char* text : texts) {
      out.push_back(*net::parse_socket_address(text));
    }
    return std::make_shared<const desired::EndpointList>(std::move(out));
  };
  plan.endpoints = list({"[fd64::1]:8080", "[fd64::2]:8080"});
  const Affinity one_port = affinity_of(plan).value();
  CHECK(affinity_map(one_port, false) == "affinity-fd00..1-tcp-80-to-8080");
  CHECK(affinity_memory(one_port, false).sets.at(0).holds == Set::Holds::Addresses);

  plan.endpoints = list({"[fd64::1]:8080", "[fd64::2]:9090"});
  const Affinity two_ports = affinity_of(plan).value();
  CHECK(affinity_map(two_ports, false) == "affinity-fd00..1-tcp-80");
  CHECK(affinity_memory(two_ports, false).sets.at(0).holds == Set::Holds::Endpoints);

  plan.endpoints = nullptr;
  CHECK_FALSE(affinity_of(plan));
}

// Applies changes to slots as the kernel would, and complains as it would.
class SlotKernel {
 public:
  bool apply(const ElementChanges& changes) {
    for (const Element& e : changes.deletions[static_cast<std::size_t>(SetId::Endpoints)]) {
      if (slots_.erase(decode_slot(net::Family::IPv4, KeyShape::FrontendSlot, e.key)->slot) == 0) {
        return false;
      }
    }
    for (const Element& e : changes.additions[static_cast<std::size_t>(SetId::Endpoints)]) {
      if (!slots_
               .emplace(
                   decode_slot(net::Family::IPv4, KeyShape::FrontendSlot, e.key)->slot,
                   *decode_data(net::Family::IPv4, e.data))
               .second) {
        return false;
      }
    }
    return true;
  }
  std::vector<net::SocketAddress> dense() const {
    std::vector<net::SocketAddress> out;
    for (const auto& [slot, address] : slots_) {
      if (slot != out.size()) {
        return {};
      }
      out.push_back(address);
    }
    return out;
  }

 private:
  std::map<std::uint32_t, net::SocketAddress> slots_;
};

TEST_CASE("random walks: slots stay dense, the kernel agrees, and nothing is written twice") {
  std::mt19937 random(7);
  for (int walk = 0; walk < 200; ++walk) {
    SlotKernel kernel;
    FrontendState state;
    for (int step = 0; step < 40; ++step) {
      std::set<unsigned> chosen;
      const unsigned count = std::uniform_int_distribution<unsigned>(0, 12)(random);
      for (unsigned i = 0; i < count; ++i) {
        chosen.insert(std::uniform_int_distribution<unsigned>(0, 15)(random));
      }
      FrontendPlan plan = balance(chosen);
      if (chosen.empty()) {
        plan.fate = Fate::Refuse;
        plan.endpoints = nullptr;
      }
      ElementChanges changes;
      state = diff_frontend(frontend(), state, &plan, changes);
      REQUIRE(kernel.apply(changes));
      REQUIRE(std::ranges::equal(kernel.dense(), state.endpoints.slots()));
      desired::EndpointList sorted(state.endpoints.slots().begin(), state.endpoints.slots().end());
      std::sort(sorted.begin(), sorted.end());
      REQUIRE(sorted == (plan.endpoints ? *plan.endpoints : desired::EndpointList{}));
      ElementChanges again;
      REQUIRE(diff_frontend(frontend(), state, &plan, again) == state);
      REQUIRE(again.count == 0);
    }
    ElementChanges changes;
    state = diff_frontend(frontend(), state, nullptr, changes);
    REQUIRE(kernel.apply(changes));
    REQUIRE(state.empty());
  }
}

}  // namespace
}  // namespace shunt::backend::nft
