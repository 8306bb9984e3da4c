#include "sync/flow_handover.h"

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <string>

namespace shunt::sync {
namespace {

using backend::ApplyReport;
using backend::Delta;
using desired::FrontendKey;
using net::Protocol;

// Remembers what it was told, as "10.64.0.1:53 10.64.0.2:53", "nobody" or "gone".
struct FakeCleaner : backend::FlowCleaner {
  void changing(net::Family, const std::vector<FrontendKey>& frontends) override {
    warned.insert(frontends.begin(), frontends.end());
  }
  void changed(net::Family, std::vector<backend::ServingChange> changes) override {
    ++calls;
    for (const backend::ServingChange& change : changes) {
      std::string text;
      if (!change.serving) {
        text = "gone";
      } else if (!*change.serving) {
        text = "nobody";
      } else {
        for (const net::SocketAddress& endpoint : **change.serving) {
          text += (text.empty() ? "" : " ") + net::to_string(endpoint);
        }
      }
      told[to_string(change.frontend)] = text;
      warned.erase(change.frontend);
    }
  }
  void untranslated(
      net::Family, std::shared_ptr<const std::vector<FrontendKey>> frontends) override {
    holes.push_back(*frontends);
  }
  bool idle() const override { return true; }

  std::vector<std::vector<FrontendKey>> holes;
  int calls = 0;
  std::set<FrontendKey> warned;  // and not told since
  std::map<std::string, std::string> told;
};
using Told = std::map<std::string, std::string>;

FrontendKey key(const char* ip, Protocol protocol = Protocol::Udp) {
  return {*net::parse_ip(ip), protocol, net::Port{53}};
}

struct Fixture {
  // What the Service "name" claims: one frontend, served by one endpoint or by nobody.
  void plan(const char* name, const FrontendKey& frontend, const char* endpoint) {
    desired::FrontendPlan plan;
    plan.service = name;
    plan.fate = ++plans % 2 == 0 ? desired::Fate::Balance : desired::Fate::Drop;
    if (endpoint != nullptr) {
      plan.serving = std::make_shared<const desired::EndpointList>(
          desired::EndpointList{{*net::parse_ip(endpoint), net::Port{53}}});
    }
    wanted.set_service(
        {"ns", name},
        {0, name},
        {{frontend, std::make_shared<const desired::FrontendPlan>(plan)}},
        delta.frontends,
        conflicts);
  }
  void forget(const char* name) {
    wanted.set_service({"ns", name}, {}, {}, delta.frontends, conflicts);
  }
  // One apply that ends as `report` says; what the cleaner hears of it.
  Told apply(const ApplyReport& report = {}) {
    cleaner.told.clear();
    handover.about_to_apply(net::Family::IPv4, wanted, delta, cleaner);
    handover.applied(net::Family::IPv4, wanted, delta, report, set_aside, cleaner);
    delta = {};
    return cleaner.told;
  }

  desired::DesiredState wanted;
  Delta delta{{}, true, true};
  std::vector<desired::Conflict> conflicts;
  std::set<FrontendKey> set_aside;
  FlowHandover handover;
  FakeCleaner cleaner;
  int plans = 0;
};

TEST_CASE("the first apply hands over every UDP frontend, and nothing else") {
  Fixture at;
  at.plan("a", key("10.96.0.1"), "10.64.0.1");
  at.plan("b", key("10.96.0.2"), nullptr);
  at.plan("c", key("10.96.0.3", Protocol::Tcp), "10.64.0.3");
  CHECK(at.apply() == Told{{"10.96.0.1:53/UDP", "10.64.0.1:53"}, {"10.96.0.2:53/UDP", "nobody"}});
}

TEST_CASE("the first apply makes the cleaner look even where there is no news") {
  Fixture at;
  CHECK(at.apply().empty());
  CHECK(at.cleaner.calls == 1);
  at.apply();
  CHECK(at.cleaner.calls == 1);
}

TEST_CASE("later only other serving endpoints are news") {
  Fixture at;
  at.plan("a", key("10.96.0.1"), "10.64.0.1");
  at.apply();
  at.plan("a", key("10.96.0.1"), "10.64.0.1");  // another fate, the same endpoint
  REQUIRE_FALSE(at.delta.frontends.empty());
  CHECK(at.apply().empty());
  CHECK(at.cleaner.calls == 1);
  at.plan("a", key("10.96.0.1"), "10.64.0.2");
  CHECK(at.apply() == Told{{"10.96.0.1:53/UDP", "10.64.0.2:53"}});
  at.plan("a", key("10.96.0.1"), nullptr);
  CHECK(at.apply() == Told{{"10.96.0.1:53/UDP", "nobody"}});
  at.forget("a");
  CHECK(at.apply() == Told{{"10.96.0.1:53/UDP", "gone"}});
  at.plan("a", key("10.96.0.1"), nullptr);
  CHECK(at.apply() == Told{{"10.96.0.1:53/UDP", "nobody"}});
}

TEST_CASE("what failed to apply is handed over once it was applied") {
  Fixture at;
  at.plan("a", key("10.96.0.1"), "10.64.0.1");
  at.plan("b", key("10.96.0.2"), "10.64.0.1");
  at.apply();
  at.plan("a", key("10.96.0.1"), "10.64.0.2");
  at.plan("b", key("10.96.0.2"), "10.64.0.2");
  ApplyReport failed;
  failed.outcome = fail(Errc::Again, "busy");
  failed.retry = {key("10.96.0.1")};
  CHECK(at.apply(failed) == Told{{"10.96.0.2:53/UDP", "10.64.0.2:53"}});
  CHECK(at.cleaner.warned == std::set{key("10.96.0.1")});
  at.delta.frontends = failed.retry;
  CHECK(at.apply() == Told{{"10.96.0.1:53/UDP", "10.64.0.2:53"}});
}

TEST_CASE("a change that failed and was taken back is handed over: the kernel may have had it") {
  Fixture at;
  at.plan("a", key("10.96.0.1"), "10.64.0.1");
  at.apply();
  at.plan("a", key("10.96.0.1"), "10.64.0.2");
  ApplyReport failed;
  failed.outcome = fail(Errc::Again, "busy");
  failed.retry = {key("10.96.0.1")};
  CHECK(at.apply(failed).empty());
  at.delta.frontends = failed.retry;
  at.plan("a", key("10.96.0.1"), "10.64.0.1");
  CHECK(at.apply() == Told{{"10.96.0.1:53/UDP", "10.64.0.1:53"}});
}

TEST_CASE("when nobody knows what the kernel has, nothing is handed over until all was repaired") {
  Fixture at;
  at.plan("a", key("10.96.0.1"), "10.64.0.1");
  at.plan("b", key("10.96.0.2"), "10.64.0.1");
  at.apply();
  at.plan("a", key("10.96.0.1"), "10.64.0.2");
  at.forget("b");
  ApplyReport lost;
  lost.outcome = fail(Errc::Stale, "no answer");
  lost.retry_everything = true;
  CHECK(at.apply(lost).empty());
  CHECK(at.cleaner.calls == 1);
  at.delta.everything = true;
  CHECK(at.apply() == Told{{"10.96.0.1:53/UDP", "10.64.0.2:53"}, {"10.96.0.2:53/UDP", "gone"}});
}

TEST_CASE("a frontend that the kernel refuses is handed over once it is accepted") {
  Fixture at;
  at.plan("a", key("10.96.0.1"), "10.64.0.1");
  at.plan("b", key("10.96.0.2"), "10.64.0.2");
  at.set_aside = {key("10.96.0.1")};
  CHECK(at.apply() == Told{{"10.96.0.2:53/UDP", "10.64.0.2:53"}});
  at.set_aside.clear();
  ApplyReport accepted;
  accepted.accepted = {key("10.96.0.1")};
  CHECK(at.apply(accepted) == Told{{"10.96.0.1:53/UDP", "10.64.0.1:53"}});
  CHECK(at.cleaner.warned.empty());
}

TEST_CASE("after a repair the cleaner looks at frontends that have endpoints, in order") {
  Fixture at;
  const auto claim = [&](const char* name, const FrontendKey& frontend, bool here, bool anywhere) {
    const auto list = std::make_shared<const desired::EndpointList>(
        desired::EndpointList{{*net::parse_ip("10.64.0.1"), net::Port{53}}});
    desired::FrontendPlan plan;
    plan.local_endpoints = here ? list : nullptr;
    plan.endpoints = anywhere ? list : nullptr;
    at.wanted.set_service(
        {"ns", name},
        {0, name},
        {{frontend, std::make_shared<const desired::FrontendPlan>(plan)}},
        at.delta.frontends,
        at.conflicts);
  };
  claim("nobody", key("10.96.0.4", Protocol::Tcp), false, false);
  FlowHandover::repaired(net::Family::IPv4, at.wanted, at.cleaner);
  CHECK(at.cleaner.holes.empty());

  claim("udp", key("10.96.0.3"), true, true);
  claim("tcp", key("10.96.0.1", Protocol::Tcp), false, true);
  claim("local", key("10.96.0.2", Protocol::Sctp), true, false);
  FlowHandover::repaired(net::Family::IPv4, at.wanted, at.cleaner);
  REQUIRE(at.cleaner.holes.size() == 1);
  CHECK(
      at.cleaner.holes[0] ==
      std::vector<FrontendKey>{
          key("10.96.0.1", Protocol::Tcp), key("10.96.0.2", Protocol::Sctp), key("10.96.0.3")});
}

}  // namespace
}  // namespace shunt::sync
