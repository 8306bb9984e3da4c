#include "config/sanity.h"

#include <catch2/catch_test_macros.hpp>

namespace shunt::config {
namespace {

using net::Family;

net::Cidr range(const char* text) { return net::parse_cidr(text).value(); }

TEST_CASE("NodePort ranges of one family alone leave the other open, which is said") {
  Options options;
  const std::vector<Family> both{Family::IPv4, Family::IPv6};
  CHECK(doubts(options, both).empty());  // `primary`
  options.node_port_addresses = {NodePortAddresses::Kind::Ranges, {range("10.0.0.0/8")}};
  const auto said = doubts(options, both);
  REQUIRE(said.size() == 1);
  CHECK_FALSE(said[0].fatal);
  CHECK(said[0].what.find("nodePortAddresses has no IPv6 range") == 0);
  CHECK(doubts(options, {Family::IPv4}).empty());
}

TEST_CASE("pod ranges of a family that the node has not, are the end of a single-stack node") {
  Options options;
  options.cluster_cidrs = {range("fd00::/8")};
  const auto said = doubts(options, {Family::IPv4});
  REQUIRE(said.size() == 1);
  CHECK(said[0].fatal);
  CHECK(doubts(options, {Family::IPv4, Family::IPv6}).empty());
  options.detect_local = DetectLocalMode::BridgeInterface;
  CHECK(doubts(options, {Family::IPv4}).empty());
}

TEST_CASE("excluded ranges of the wrong family alone are said in mode ipvs") {
  Options options;
  options.ipvs.exclude_cidrs = {range("fd00::/8")};
  CHECK(doubts(options, {Family::IPv4}).empty());
  options.mode = Mode::Ipvs;
  const auto said = doubts(options, {Family::IPv4});
  REQUIRE(said.size() == 1);
  CHECK_FALSE(said[0].fatal);
  CHECK(said[0].what.find("ipvs.excludeCIDRs") == 0);
  CHECK(doubts(options, {Family::IPv4, Family::IPv6}).empty());
}

}  // namespace
}  // namespace shunt::config
