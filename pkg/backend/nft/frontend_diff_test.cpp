#include "backend/nft/frontend_diff.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <random>
#include <set>

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
  return {
      "ns/svc:http", Fate::Balance, std::make_shared<const desired::EndpointList>(list), nullptr};
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
  CHECK(next.slots.size() == 3);
  CHECK(changes.count == 1);
  CHECK(additions(changes, SetId::Endpoints) == 1);
}

TEST_CASE("an endpoint that goes is replaced by the last slot's") {
  const FrontendPlan wanted = balance({2, 3});
  ElementChanges changes;
  const auto next = diff_frontend(frontend(), state_of(balance({1, 2, 3})), &wanted, changes);
  CHECK(next.slots == std::vector{endpoint(3), endpoint(2)});
  CHECK(
      deletions(changes, SetId::Endpoints) == 2);  // slot 0 before it is refilled, and the last one
  CHECK(additions(changes, SetId::Endpoints) == 1);
  CHECK(changes.count == 3);
}

TEST_CASE("an endpoint that takes another's place costs one slot") {
  const FrontendPlan wanted = balance({1, 9, 3});
  ElementChanges changes;
  const auto next = diff_frontend(frontend(), state_of(balance({1, 2, 3})), &wanted, changes);
  CHECK(next.slots == std::vector{endpoint(1), endpoint(9), endpoint(3)});
  CHECK(changes.count == 2);
}

TEST_CASE("crossing a class costs two more elements") {
  const FrontendPlan wanted = balance({1, 2, 3, 4, 5});
  ElementChanges changes;
  diff_frontend(frontend(), state_of(balance({1, 2, 3, 4})), &wanted, changes);
  CHECK(additions(changes, class_set(3)) == 1);
  CHECK(deletions(changes, class_set(2)) == 1);
  CHECK(changes.count == 3);
}

TEST_CASE("a frontend without endpoints keeps its place and is refused or dropped") {
  for (const Fate fate : {Fate::Refuse, Fate::Drop}) {
    const FrontendPlan none{"ns/svc:http", fate, nullptr, nullptr};
    ElementChanges changes;
    const auto next = diff_frontend(frontend(), state_of(balance({1})), &none, changes);
    CHECK(next.in_service_ips);
    CHECK(next.in_refused == (fate == Fate::Refuse));
    CHECK(next.in_dropped == (fate == Fate::Drop));
    CHECK(next.slots.empty());
    CHECK(next.classes == 0);
  }
}

TEST_CASE("a frontend that another Service takes over gets that Service's name") {
  FrontendPlan other = balance({1});
  other.service = "ns/other:http";
  ElementChanges changes;
  diff_frontend(frontend(), state_of(balance({1})), &other, changes);
  CHECK(changes.count == 2);
  CHECK(
      changes.additions[static_cast<std::size_t>(SetId::ServiceIps)].at(0).comment ==
      "ns/other:http");
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
  CHECK(changes.additions[static_cast<std::size_t>(SetId::ServiceIps)].at(0).comment.size() == 127);
}

// Applies changes to slots as the kernel would, and complains as it would.
class SlotKernel {
 public:
  bool apply(const ElementChanges& changes) {
    for (const Element& e : changes.deletions[static_cast<std::size_t>(SetId::Endpoints)]) {
      if (slots_.erase(decode_slot(net::Family::IPv4, e.key)->slot) == 0) {
        return false;
      }
    }
    for (const Element& e : changes.additions[static_cast<std::size_t>(SetId::Endpoints)]) {
      if (!slots_
               .emplace(
                   decode_slot(net::Family::IPv4, e.key)->slot,
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
      REQUIRE(kernel.dense() == state.slots);
      auto sorted = state.slots;
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
