#include "topology/hints.h"

#include <catch2/catch_test_macros.hpp>

namespace shunt::topology {
namespace {

using Names = std::vector<std::string>;
using Ignores = std::vector<Ignored>;

model::Endpoint endpoint(bool ready, Names zones, Names nodes) {
  model::Endpoint e;
  e.ready = e.serving = ready;
  e.zone_hints = std::move(zones);
  e.node_hints = std::move(nodes);
  return e;
}
model::Endpoint ready(Names zones, Names nodes = {}) {
  return endpoint(true, std::move(zones), std::move(nodes));
}
model::Endpoint unready(Names zones, Names nodes = {}) {
  return endpoint(false, std::move(zones), std::move(nodes));
}

const NodeTopology kNode{"edge-a", "z1"};

TEST_CASE("the finest hints that every ready endpoint carries, and that name us, apply") {
  struct Case {
    const char* name;
    std::vector<model::Endpoint> endpoints;
    NodeTopology node;
    Distribution distribution;
    Ignores ignored;
  };
  using enum Ignored;
  const Case cases[] = {
      {"no endpoint: nothing to filter", {}, kNode, Distribution::None, {NoReadyEndpoints}},
      {"none ready: hints of the others have no say",
       {unready({"z1"}, {"edge-a"})},
       kNode,
       Distribution::None,
       {NoReadyEndpoints}},
      {"hinted for our node", {ready({}, {"edge-a"})}, kNode, Distribution::SameNode, {}},
      {"hinted for node and zone: the node wins",
       {ready({"z1"}, {"edge-a"}), ready({"z1"}, {"edge-b"})},
       kNode,
       Distribution::SameNode,
       {}},
      {"hinted for our zone",
       {ready({"z1"}), ready({"z2"})},
       kNode,
       Distribution::SameZone,
       {NodeHintMissingOnEndpoint}},
      {"node hints name others: our zone",
       {ready({"z1"}, {"edge-b"})},
       kNode,
       Distribution::SameZone,
       {NoEndpointHintedForNode}},
      {"one ready endpoint lacks a zone hint",
       {ready({"z1"}), ready({})},
       kNode,
       Distribution::None,
       {NodeHintMissingOnEndpoint, ZoneHintMissingOnEndpoint}},
      {"an unready endpoint lacks a zone hint: it has no say",
       {ready({"z1"}), unready({})},
       kNode,
       Distribution::SameZone,
       {NodeHintMissingOnEndpoint}},
      {"zone hints name others",
       {ready({"z2"}), ready({"z3"})},
       kNode,
       Distribution::None,
       {NodeHintMissingOnEndpoint, NoEndpointHintedForZone}},
      {"our zone is not known",
       {ready({"z2"})},
       {"edge-a", ""},
       Distribution::None,
       {NodeHintMissingOnEndpoint, NodeZoneUnknown}},
      {"node hints switched off count as absent",
       {ready({"z1"}, {"edge-a"}), ready({"z2"}, {"edge-b"})},
       {"edge-a", "z1", false},
       Distribution::SameZone,
       {NodeHintMissingOnEndpoint}},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const HintFilter filter = hint_filter(c.endpoints, c.node);
      CHECK(filter.distribution == c.distribution);
      CHECK(filter.ignored == c.ignored);
    }
  }
}

TEST_CASE("availability under a filter is a matter of hints alone") {
  const model::Endpoint e = ready({"z1", "z2"}, {"edge-b", "edge-c"});
  CHECK(is_available(e, Distribution::None, kNode));
  CHECK(is_available(e, Distribution::SameZone, kNode));
  CHECK_FALSE(is_available(e, Distribution::SameNode, kNode));
  CHECK_FALSE(is_available(e, Distribution::SameZone, {"edge-a", "z3"}));
  CHECK(is_available(e, Distribution::SameNode, {"edge-c", "z3"}));
}

}  // namespace
}  // namespace shunt::topology
