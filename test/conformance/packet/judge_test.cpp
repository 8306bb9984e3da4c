#include "packet/judge.h"

#include <catch2/catch_test_macros.hpp>
#include <cerrno>

using namespace shunt;                       // NOLINT(google-build-using-namespace): a test file
using namespace shunt::conformance::packet;  // NOLINT(google-build-using-namespace): a test file

namespace {

net::SocketAddress address(const char* text) { return net::parse_socket_address(text).value(); }

Flow flow_to_two_endpoints(std::optional<bool> snat) {
  Flow flow;
  flow.from = address("10.64.0.9:0");
  flow.to = address("10.112.0.41:80");
  flow.expect.endpoints = {address("10.64.0.1:80"), address("10.64.1.1:80")};
  flow.expect.snat = snat;
  return flow;
}

Observation arrived(const char* to, const char* source = "10.64.0.9:2000") {
  Observation observation;
  observation.sent_from = address("10.64.0.9:2000");
  Sighting sighting;
  sighting.from = address(source);
  sighting.to = address(to);
  observation.seen = sighting;
  return observation;
}

Observation refused() {
  Observation observation;
  observation.sent_from = address("10.64.0.9:2000");
  observation.error = ECONNREFUSED;
  return observation;
}

}  // namespace

TEST_CASE("a packet must come out at a listed endpoint") {
  const Flow flow = flow_to_two_endpoints(false);
  CHECK_FALSE(problem_of(flow, arrived("10.64.1.1:80")));
  CHECK(problem_of(flow, arrived("10.64.1.1:81")));
  CHECK(problem_of(flow, arrived("10.112.0.41:80")));
  CHECK(problem_of(flow, refused()));
  CHECK(problem_of(flow, Observation{}));
}

TEST_CASE("the source is judged as the case says") {
  const Observation rewritten = arrived("10.64.0.1:80", "10.64.0.254:999");
  const Observation kept = arrived("10.64.0.1:80");
  CHECK(problem_of(flow_to_two_endpoints(false), rewritten));
  CHECK_FALSE(problem_of(flow_to_two_endpoints(true), rewritten));
  CHECK(problem_of(flow_to_two_endpoints(true), kept));
  CHECK_FALSE(problem_of(flow_to_two_endpoints(std::nullopt), rewritten));
  CHECK_FALSE(problem_of(flow_to_two_endpoints(std::nullopt), kept));

  Flow hairpin = flow_to_two_endpoints(false);
  hairpin.expect.snat_for = {address("10.64.0.1:80")};
  CHECK_FALSE(problem_of(hairpin, rewritten));
  CHECK(problem_of(hairpin, kept));
  CHECK_FALSE(problem_of(hairpin, arrived("10.64.1.1:80")));
}

TEST_CASE("a client on the node shows a rewritten source by its port, bar one coincidence") {
  Flow flow = flow_to_two_endpoints(true);
  flow.place = Place::Node;
  FlowRecord record(flow);
  CHECK_FALSE(problem_of(flow, arrived("10.64.1.1:80")));
  CHECK_FALSE(record.add(arrived("10.64.1.1:80")));
  CHECK_FALSE(record.add(arrived("10.64.1.1:80", "10.64.0.9:4711")));
  CHECK(record.add(arrived("10.64.1.1:80")));
}

TEST_CASE("refusal, silence and passing untouched exclude each other") {
  Flow flow = flow_to_two_endpoints(std::nullopt);
  const Observation untouched = arrived("10.112.0.41:80");
  const Observation silence;
  flow.expect.verdict = Verdict::Reject;
  CHECK_FALSE(problem_of(flow, refused()));
  CHECK(problem_of(flow, silence));
  CHECK(problem_of(flow, untouched));
  Observation refused_by_endpoint = arrived("10.64.0.1:80");
  refused_by_endpoint.error = ECONNREFUSED;
  CHECK(problem_of(flow, refused_by_endpoint));

  flow.expect.verdict = Verdict::Drop;
  CHECK_FALSE(problem_of(flow, silence));
  CHECK(problem_of(flow, refused()));
  CHECK(problem_of(flow, untouched));

  flow.expect.verdict = Verdict::NoMatch;
  CHECK_FALSE(problem_of(flow, untouched));
  CHECK(problem_of(flow, arrived("10.112.0.41:80", "10.80.0.10:999")));
  CHECK(problem_of(flow, arrived("10.64.0.1:80")));
  CHECK(problem_of(flow, silence));
}

TEST_CASE(
    "a spread is met when every endpoint was reached, and takes enough connections to say no") {
  const Flow flow = flow_to_two_endpoints(false);
  FlowRecord record(flow);
  CHECK(record.wanted_connections() == 21);
  for (int i = 0; i < 20; ++i) {
    CHECK_FALSE(record.add(arrived("10.64.0.1:80")));
  }
  CHECK_FALSE(record.satisfied());
  CHECK(record.missing());
  CHECK_FALSE(record.add(arrived("10.64.1.1:80")));
  CHECK(record.satisfied());
  CHECK_FALSE(record.missing());
}

TEST_CASE("sticky clients stay") {
  Flow flow = flow_to_two_endpoints(false);
  flow.sticky = true;
  FlowRecord record(flow);
  CHECK_FALSE(record.add(arrived("10.64.0.1:80")));
  CHECK_FALSE(record.add(arrived("10.64.0.1:80")));
  CHECK(record.add(arrived("10.64.1.1:80")));
}
