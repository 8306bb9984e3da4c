#include "packet/capabilities.h"

#include <catch2/catch_test_macros.hpp>

using namespace shunt;                       // NOLINT(google-build-using-namespace): a test file
using namespace shunt::conformance::packet;  // NOLINT(google-build-using-namespace): a test file

namespace {

nlohmann::json small_case() {
  return nlohmann::json::parse(R"({
    "id": "x", "modes": ["nft"],
    "settings": {"nodeName": "n", "families": ["IPv4"], "nodeAddresses": ["10.80.0.10"],
                 "detectLocal": {"mode": "none"}, "podLinks": {"style": "veth", "prefix": "pod"}},
    "steps": [{
      "apply": [{"kind": "Service", "metadata": {"namespace": "a", "name": "s"},
                 "spec": {"clusterIP": "10.112.0.41", "sessionAffinity": "ClientIP",
                          "externalIPs": ["203.0.113.1"],
                          "ports": [{"port": 80, "nodePort": 30301}]}}],
      "flows": [
        {"from": {"place": "pod-local", "ip": "10.64.0.9"}, "to": {"ip": "10.112.0.41", "port": 80},
         "protocol": "TCP", "expect": {"verdict": "reject"}},
        {"from": {"place": "pod-local", "ip": "10.64.0.9"}, "to": {"ip": "10.80.0.10", "port": 30301},
         "protocol": "TCP", "expect": {"verdict": "reject"}},
        {"from": {"place": "pod-local", "ip": "10.64.0.9"}, "to": {"ip": "10.80.0.10", "port": 22},
         "protocol": "TCP", "expect": {"verdict": "no-match"}, "expectIn": {"ipt": {"verdict": "drop"}}}
      ]}]})");
}

}  // namespace

TEST_CASE("a flow asks for what its destination and its Service take") {
  const Case nft = parse_case(small_case(), "nft");
  const ServiceIndex services(nft);
  const Step& step = nft.steps.at(0);
  CHECK(
      services.needed_by(step.flows.at(0), step) == Capabilities{"cluster-ip", "session-affinity"});
  CHECK(
      services.needed_by(step.flows.at(1), step) == Capabilities{"node-port", "session-affinity"});
  CHECK(services.needed_by(step.flows.at(2), step).empty());
  CHECK(step.flows.at(2).expect.verdict == Verdict::NoMatch);
  CHECK(parse_case(small_case(), "ipt").steps.at(0).flows.at(2).expect.verdict == Verdict::Drop);
}

TEST_CASE("needs that the bank names come on top, of the case and of the flow") {
  nlohmann::json json = small_case();
  json["needs"] = {"sctp"};
  json["steps"][0]["flows"][2]["needs"] = {"raw-packets"};
  const Case packet_case = parse_case(json, "nft");
  const ServiceIndex services(packet_case);
  const Step& step = packet_case.steps.at(0);
  CHECK(services.needed_by(step.flows.at(2), step) == Capabilities{"raw-packets", "sctp"});
}

TEST_CASE("an agent can do everything unless somebody says what it can") {
  Abilities abilities;
  CHECK_FALSE(abilities.lacking({"node-port", "sctp"}));
  abilities.agent = Capabilities{"node-port"};
  CHECK_FALSE(abilities.lacking({"node-port"}));
  CHECK(abilities.lacking({"node-port", "sctp"}) == "needs sctp");
}

TEST_CASE("what the machine cannot do, no agent can") {
  Abilities abilities;
  abilities.machine_lacks["sctp"] = "the kernel is too small";
  CHECK(abilities.lacking({"node-port", "sctp"}) == "needs sctp, and the kernel is too small");
}
