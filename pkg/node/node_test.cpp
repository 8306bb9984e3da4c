#include <catch2/catch_test_macros.hpp>

#include "node/conntrack_limits.h"
#include "node/local_traffic.h"
#include "node/node_port_ranges.h"
#include "node/own_addresses.h"
#include "node/ranges.h"
#include "node/start_up.h"

// What the conformance bank (kind node-config) does not ask.
namespace shunt::node {
namespace {

using Verdict = StartUpWait::Verdict;

net::IpAddress ip(const char* text) { return net::parse_ip(text).value(); }
net::Cidr cidr(const char* text) { return net::parse_cidr(text).value(); }

kube::Node node_with(
    std::vector<kube::NodeAddress> addresses, std::vector<std::string> pod_cidrs = {}) {
  kube::Node node;
  node.addresses = std::move(addresses);
  node.pod_cidrs = std::move(pod_cidrs);
  return node;
}

TEST_CASE("addresses of a Node that cannot be read are passed over") {
  CHECK(addresses_of(node_with({})).empty());
  CHECK(
      addresses_of(node_with(
          {{"InternalIP", "none of yours"},
           {"InternalIP", ""},
           {"InternalIP", "10.80.0.010"},
           {"ExternalIP", "203.0.113.9"}})) == std::vector{ip("10.80.0.10")});
}

TEST_CASE("an IPv6 node keeps IPv6 first") {
  const auto addresses =
      addresses_of(node_with({{"InternalIP", "fd80::10"}, {"ExternalIP", "203.0.113.9"}}));
  REQUIRE(addresses == std::vector{ip("fd80::10"), ip("203.0.113.9")});
  CHECK(own_addresses(addresses, net::IpAddress{}).primary == net::Family::IPv6);
}

TEST_CASE("primary without a known address restricts nothing") {
  const auto ranges = primary_ranges(own_addresses({}, net::IpAddress{}));
  CHECK(ranges.empty());
  CHECK(match_all(node_port_ranges(ranges, net::Family::IPv4)));
  CHECK(match_all(node_port_ranges(ranges, net::Family::IPv6)));
}

TEST_CASE("ranges cover their own family only") {
  const std::vector ranges{cidr("10.80.0.0/24")};
  CHECK(net::any_contains(ranges, ip("10.80.0.7")));
  CHECK_FALSE(net::any_contains(ranges, ip("10.80.1.7")));
  CHECK_FALSE(net::any_contains(ranges, ip("fd80::7")));
}

TEST_CASE("text that is no range counts as absent") {
  const std::vector<std::string> texts{"10.0.0.0/8", "junk", "fd00::/8", "10.0.0.1"};
  CHECK(of_family(texts, net::Family::IPv4) == std::vector{cidr("10.0.0.0/8")});
  CHECK(of_family(texts, net::Family::IPv6) == std::vector{cidr("fd00::/8")});
}

TEST_CASE("the start waits no longer than patience lasts") {
  const Clock::time_point start{};
  StartUpWait wait(false, {Millis{100}, Millis{1000}});
  CHECK(wait.look(nullptr, start) == Verdict::Wait);
  CHECK(wait.due() == start + Millis{100});
  CHECK(wait.look(nullptr, start + Millis{99}) == Verdict::Wait);
  CHECK(wait.look(nullptr, start + Millis{100}) == Verdict::Start);
  CHECK_FALSE(wait.due());
}

TEST_CASE("podCIDRs are waited for after the addresses, with patience of their own") {
  const Clock::time_point start{};
  const kube::Node bare = node_with({});
  const kube::Node whole = node_with({{"InternalIP", "10.80.0.10"}}, {"10.64.0.0/24"});
  StartUpWait wait(true, {Millis{100}, Millis{1000}});
  CHECK(wait.look(&bare, start) == Verdict::Wait);
  CHECK(wait.look(&bare, start + Millis{100}) == Verdict::Wait);
  CHECK(wait.due() == start + Millis{1100});
  SECTION("they come") { CHECK(wait.look(&whole, start + Millis{1099}) == Verdict::Start); }
  SECTION("they do not") {
    CHECK(wait.look(&bare, start + Millis{1100}) == Verdict::PodRangesMissing);
  }
  SECTION("there is not even a Node") {
    CHECK(wait.look(nullptr, start + Millis{1100}) == Verdict::NodeMissing);
  }
}

TEST_CASE("a restart is for podCIDRs that matter and changed") {
  const kube::Node node = node_with({}, {"10.64.1.0/24"});
  CHECK(pod_cidrs_changed(true, {"10.64.0.0/24"}, &node));
  CHECK_FALSE(pod_cidrs_changed(false, {"10.64.0.0/24"}, &node));
  CHECK_FALSE(pod_cidrs_changed(true, {"10.64.1.0/24"}, &node));
  CHECK_FALSE(pod_cidrs_changed(true, {"10.64.0.0/24"}, nullptr));
}

TEST_CASE(
    "the cap of tracked connections beats conntrack.min, unless nothing is scaled beyond it") {
  config::Conntrack wanted;
  wanted.min = 2'000'000;
  CHECK(conntrack_settings(wanted, 33).at(0) == KernelSetting{kConntrackMax, 1'048'576});
  CHECK(conntrack_settings(wanted, 32).at(0) == KernelSetting{kConntrackMax, 2'000'000});
  wanted.min = 0;
  CHECK(conntrack_settings(wanted, 2).at(0) == KernelSetting{kConntrackMax, 65'536});
}

TEST_CASE("CPUs are counted from the kernel's list") {
  CHECK(cpus_in("0") == 1);
  CHECK(cpus_in("0-3") == 4);
  CHECK(cpus_in("0-3,8,10-11") == 7);
  for (const char* bad : {"", "x", "3-1", "0-", "-1", "0,,1", "0-99999999", "0-3\n", "0 "}) {
    CHECK(cpus_in(bad) == 0);
  }
}

}  // namespace
}  // namespace shunt::node
