#include "topology/categorize.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>

namespace shunt::topology {
namespace {

using Indices = std::vector<std::uint32_t>;

enum class State { Ready, Unready, Draining, Dead };
enum class Place { Here, There };

model::Endpoint endpoint(State state, Place place, std::vector<std::string> zones = {}) {
  model::Endpoint e;
  e.ready = state == State::Ready;
  e.serving = state == State::Ready || state == State::Draining;
  e.terminating = state == State::Draining || state == State::Dead;
  e.local = place == Place::Here;
  e.zone_hints = std::move(zones);
  return e;
}

model::ServicePort port(bool internal_local, bool external_local, bool external) {
  model::ServicePort p;
  p.internal_local = internal_local;
  p.external_local = external_local;
  p.node_port = net::Port{static_cast<std::uint16_t>(external ? 30080 : 0)};
  return p;
}
const model::ServicePort kPlain = port(false, false, false);
const model::ServicePort kExternalLocal = port(false, true, true);
const model::ServicePort kInternalLocal = port(true, false, false);
const model::ServicePort kInternalLocalExternal = port(true, false, true);

const NodeTopology kNode{"edge-a", "z1"};

TEST_CASE("endpoints are chosen by condition, policy and hints") {
  using enum State;
  using enum Place;
  struct Case {
    const char* name;
    model::ServicePort port;
    std::vector<model::Endpoint> endpoints;
    Indices cluster;
    Indices local;
    Indices reachable;
    bool any;
  };
  const Case cases[] = {
      {"no endpoints", kPlain, {}, {}, {}, {}, false},
      {"no endpoints, policy Local", kInternalLocal, {}, {}, {}, {}, false},
      {"ready ones silence draining ones",
       kPlain,
       {endpoint(Draining, Here), endpoint(Ready, There)},
       {1},
       {},
       {1},
       true},
      {"nothing ready: the draining ones, not the dead nor the unready",
       kPlain,
       {endpoint(Draining, Here), endpoint(Dead, Here), endpoint(Unready, Here)},
       {0},
       {},
       {0},
       true},
      {"nothing ready: hints play no part",
       kPlain,
       {endpoint(Draining, There, {"z2"}), endpoint(Draining, There, {"z1"})},
       {0, 1},
       {},
       {0, 1},
       true},
      {"nothing usable: refuse",
       kExternalLocal,
       {endpoint(Dead, Here), endpoint(Unready, There)},
       {},
       {},
       {},
       false},
      {"local policy finds only endpoints elsewhere: drop, not refuse",
       kInternalLocal,
       {endpoint(Ready, There)},
       {},
       {},
       {},
       true},
      {"internal Local without external access: no cluster endpoints",
       kInternalLocal,
       {endpoint(Ready, Here), endpoint(Ready, There)},
       {},
       {0},
       {0},
       true},
      {"internal Local with external access: both",
       kInternalLocalExternal,
       {endpoint(Ready, Here), endpoint(Ready, There)},
       {0, 1},
       {0},
       {0, 1},
       true},
      {"external Local without external access is moot",
       port(false, true, false),
       {endpoint(Ready, Here), endpoint(Ready, There)},
       {0, 1},
       {},
       {0, 1},
       true},
      {"local fallback is decided apart from the cluster's",
       kExternalLocal,
       {endpoint(Ready, There), endpoint(Draining, Here), endpoint(Draining, There)},
       {0},
       {1},
       {0, 1},
       true},
      {"zone hints shape the cluster set, not the local one",
       kExternalLocal,
       {endpoint(Ready, Here, {"z2"}), endpoint(Ready, There, {"z1"})},
       {1},
       {0},
       {0, 1},
       true},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const Selection got = categorize(c.port, c.endpoints, kNode);
      CHECK(got.cluster == c.cluster);
      CHECK(got.local == c.local);
      CHECK(got.reachable == c.reachable);
      CHECK(got.any_in_cluster == c.any);
    }
  }
}

TEST_CASE("a port whose cluster policy is unused says so instead of judging hints") {
  const std::vector endpoints{endpoint(State::Ready, Place::Here, {"z1"})};
  const Selection got = categorize(kInternalLocal, endpoints, kNode);
  CHECK(got.distribution == Distribution::None);
  CHECK(got.ignored == std::vector{Ignored::ClusterPolicyNotUsed});
}

TEST_CASE("every endpoint that is not used has a reason") {
  using enum State;
  using enum Place;
  const std::vector endpoints{
      endpoint(Ready, Here, {"z1"}),
      endpoint(Ready, There, {"z2"}),
      endpoint(Unready, Here, {"z1"}),
      endpoint(Draining, Here, {"z1"}),
      endpoint(Dead, There, {"z1"}),
  };
  const std::vector<Explanation> expected{
      {Exclusion::None, Exclusion::None},
      {Exclusion::NoHintForZone, Exclusion::OtherNode},
      {Exclusion::NotReady, Exclusion::NotReady},
      {Exclusion::Terminating, Exclusion::Terminating},
      {Exclusion::NotServing, Exclusion::OtherNode},
  };
  CHECK(explain(kExternalLocal, endpoints, kNode) == expected);

  CHECK(explain(kPlain, endpoints, kNode)[0].local == Exclusion::PolicyNotUsed);
  CHECK(explain(kInternalLocal, endpoints, kNode)[0].cluster == Exclusion::PolicyNotUsed);
}

TEST_CASE("a node filter is the reason when the same-node hints apply") {
  std::vector endpoints{endpoint(State::Ready, Place::Here), endpoint(State::Ready, Place::There)};
  endpoints[0].node_hints = {"edge-a"};
  endpoints[1].node_hints = {"edge-b"};
  CHECK(categorize(kPlain, endpoints, kNode).distribution == Distribution::SameNode);
  CHECK(explain(kPlain, endpoints, kNode)[1].cluster == Exclusion::NoHintForNode);
}

// The page of the specification, word for word, as slow as it likes.
Selection by_the_book(
    const model::ServicePort& p,
    const std::vector<model::Endpoint>& eps,
    const NodeTopology& node) {
  Selection s;
  s.uses_cluster = p.uses_cluster_endpoints();
  s.uses_local = p.uses_local_endpoints();
  const auto all = [&](auto wanted) {
    Indices found;
    for (std::uint32_t i = 0; i < eps.size(); ++i) {
      if (wanted(eps[i])) {
        found.push_back(i);
      }
    }
    return found;
  };
  if (s.uses_cluster) {
    s.distribution = hint_filter(eps, node).distribution;
    s.ignored = hint_filter(eps, node).ignored;
    s.cluster =
        all([&](const auto& e) { return e.ready && is_available(e, s.distribution, node); });
    if (s.cluster.empty()) {
      s.cluster = all([](const auto& e) { return e.serving && e.terminating; });
    }
    s.any_in_cluster = !s.cluster.empty();
  } else {
    s.ignored = {Ignored::ClusterPolicyNotUsed};
  }
  if (!s.uses_local) {
    s.reachable = s.cluster;
    return s;
  }
  bool local_ready = false;
  bool local_draining = false;
  for (const auto& e : eps) {
    if (e.ready) {
      s.any_in_cluster = true;
      local_ready = local_ready || e.local;
    } else if (e.serving && e.terminating) {
      s.any_in_cluster = true;
      local_draining = local_draining || e.local;
    }
  }
  if (local_ready) {
    s.local = all([](const auto& e) { return e.local && e.ready; });
  } else if (local_draining) {
    s.local = all([](const auto& e) { return e.local && e.serving && e.terminating; });
  }
  s.reachable = all([&](const auto& e) {
    const auto i = static_cast<std::uint32_t>(&e - eps.data());
    return std::count(s.cluster.begin(), s.cluster.end(), i) +
               std::count(s.local.begin(), s.local.end(), i) >
           0;
  });
  return s;
}

std::vector<model::Endpoint> any_endpoints(std::mt19937& engine) {
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(engine); };
  const auto hints = [&](const char* us, const char* other) {
    std::vector<std::string> names;
    if (below(4) > 0) {
      names.emplace_back(below(2) == 0 ? us : other);
    }
    return names;
  };
  std::vector<model::Endpoint> endpoints(static_cast<std::size_t>(below(5)));
  for (model::Endpoint& e : endpoints) {
    e.ready = below(2) == 0;
    e.serving = below(2) == 0;
    e.terminating = below(2) == 0;
    e.local = below(2) == 0;
    e.zone_hints = hints("z1", "z2");
    e.node_hints = hints("edge-a", "edge-b");
  }
  return endpoints;
}

TEST_CASE("the choice is the specification's, and explained without a gap") {
  std::mt19937 engine(1);
  for (int i = 0; i < 20000; ++i) {
    const auto endpoints = any_endpoints(engine);
    const model::ServicePort p = port((i & 1) != 0, (i & 2) != 0, (i & 4) != 0);
    const NodeTopology node{"edge-a", (i & 8) != 0 ? "z1" : ""};
    const Selection got = categorize(p, endpoints, node);
    REQUIRE(got == by_the_book(p, endpoints, node));

    const auto why = explain(p, endpoints, node);
    for (std::uint32_t e = 0; e < endpoints.size(); ++e) {
      const bool in_cluster = std::count(got.cluster.begin(), got.cluster.end(), e) > 0;
      const bool in_local = std::count(got.local.begin(), got.local.end(), e) > 0;
      REQUIRE((why[e].cluster == Exclusion::None) == in_cluster);
      REQUIRE((why[e].local == Exclusion::None) == in_local);
    }
  }
}

}  // namespace
}  // namespace shunt::topology
