// pkg/netlink/virtual_addresses.h against the real kernel, and against what ip sees there.

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "kernel/ipvs_world.h"
#include "netlink/rule_watch.h"
#include "netlink/virtual_addresses.h"

namespace shunt::netlink {
namespace {

using namespace test::ipvs;  // NOLINT(google-build-using-namespace): a test's helper
using nlohmann::json;
using Change = VirtualAddresses::Change;
using What = Change::What;
using Ips = std::vector<net::IpAddress>;
using net::Family;

constexpr std::uint32_t kMark = 0x8000;
constexpr Family kFamilies[] = {Family::IPv4, Family::IPv6};

const char* option(Family family) { return family == Family::IPv4 ? "-4" : "-6"; }
net::IpAddress vip(Family family, unsigned n) {
  net::IpAddress out = ip(family == Family::IPv4 ? "10.96.0.0" : "fd96::");
  out.bytes[out.size() - 2] = static_cast<std::uint8_t>(n / 256);
  out.bytes[out.size() - 1] = static_cast<std::uint8_t>(n % 256);
  return out;
}

// A namespace that leads somewhere, so that an address that is not local has a route.
void enter_node() {
  enter_namespace();
  const test::ipvs::Ran dummies = try_sh("ip link add up0 type dummy");
  if (dummies.exit_code != 0) {
    SKIP("no dummy devices here: " << dummies.diagnostics);
  }
  sh("ip link set up0 up; ip address add 192.0.2.1/24 dev up0;"
     "ip address add 2001:db8::1/64 dev up0 nodad;"
     "ip route add default via 192.0.2.254; ip -6 route add default via 2001:db8::fe");
}

std::unique_ptr<VirtualAddresses> open(Family family, std::uint32_t mark = kMark) {
  auto out = VirtualAddresses::open(family, mark);
  REQUIRE(out);
  return std::move(*out);
}

std::unique_ptr<VirtualAddresses> set_up(Family family) {
  auto out = open(family);
  const auto done = out->set_up();
  INFO((done ? std::string() : done.error().what));
  REQUIRE(done);
  return out;
}

std::vector<VirtualAddresses::Refused> try_apply(
    VirtualAddresses& addresses, const std::vector<Change>& changes) {
  std::vector<VirtualAddresses::Refused> refused;
  const auto applied = addresses.apply(changes, refused);
  INFO((applied ? std::string() : applied.error().what));
  REQUIRE(applied);
  return refused;
}

void change(VirtualAddresses& addresses, const std::vector<Change>& changes) {
  const auto refused = try_apply(addresses, changes);
  INFO((refused.empty() ? std::string() : refused.front().error.what));
  REQUIRE(refused.empty());
}

Ips listed(Result<Ips> list) {
  INFO((list ? std::string() : list.error().what));
  REQUIRE(list);
  return std::move(*list);
}

// Addresses of the device, as ip tells them: "10.96.0.1/32 host".
std::set<std::string> seen_addresses(Family family) {
  std::set<std::string> out;
  const std::string command =
      std::string("ip -j ") + option(family) + " address show dev kube-ipvs0";
  for (const json& device : json::parse(sh(command))) {
    for (const json& one : device.value("addr_info", json::array())) {
      out.insert(
          one["local"].get<std::string>() + "/" + std::to_string(one["prefixlen"].get<int>()) +
          " " + one["scope"].get<std::string>());
    }
  }
  return out;
}

// Local routes of one table and device, sorted.
Ips seen_routes(Family family, const std::string& table, const std::string& device) {
  Ips out;
  const Ran ran = try_sh(
      std::string("ip -j ") + option(family) + " route show table " + table + " type local dev " +
      device);
  if (ran.exit_code != 0 || ran.out.empty()) {
    return out;  // ip calls a table without routes a mistake
  }
  for (const json& one : json::parse(ran.out)) {
    out.push_back(ip(one["dst"].get<std::string>()));
  }
  std::sort(out.begin(), out.end());
  return out;
}

// "local" or "unicast"
std::string delivered(const net::IpAddress& to, std::uint32_t mark = 0) {
  const json got = json::parse(
      sh("ip -j route get " + net::to_string(to) +
         (mark == 0 ? std::string() : " mark " + std::to_string(mark))));
  return got.at(0).value("type", "unicast");
}

std::size_t rules(Family family) {
  std::size_t out = 0;
  for (const json& rule : json::parse(sh(std::string("ip -j ") + option(family) + " rule show"))) {
    out += rule.value("table", "") == "12112" ? 1 : 0;
  }
  return out;
}

json device() {
  const Ran ran = try_sh("ip -j -d link show kube-ipvs0");
  return ran.exit_code == 0 ? json::parse(ran.out).at(0) : json();
}

TEST_CASE("setting up makes the device and the rule, once") {
  for (const Family family : kFamilies) {
    enter_node();
    const auto addresses = open(family);
    CHECK(listed(addresses->bound()).empty());
    CHECK(listed(addresses->routes()).empty());
    CHECK(listed(addresses->local_routes()).empty());
    CHECK(device().is_null());  // looking changes nothing
    for (int i = 0; i < 2; ++i) {
      REQUIRE(addresses->set_up());
      CHECK(device().at("linkinfo").at("info_kind") == "dummy");
      CHECK(device().at("operstate") == "DOWN");
      CHECK(rules(family) == 1);
    }
    const json rule =
        json::parse(sh(std::string("ip -j -d ") + option(family) + " rule show priority 99")).at(0);
    CHECK(rule.at("fwmark") == "0x8000");
    CHECK(rule.at("fwmask") == "0x8000");
    CHECK(rule.at("protocol") == "kernel");  // networkd leaves it alone

    REQUIRE(open(family, 0x4000)->set_up());  // another mark of a later run
    CHECK(rules(family) == 1);
    CHECK(
        sh(std::string("ip ") + option(family) + " rule show priority 99").find("0x4000/0x4000") !=
        std::string::npos);
  }
}

TEST_CASE("a rule that somebody takes away is heard of") {
  for (const Family family : kFamilies) {
    enter_node();
    const auto addresses = set_up(family);
    auto watch = RuleWatch::open(family);
    REQUIRE(watch);
    CHECK_FALSE(watch->take_changes());
    CHECK(addresses->has_rule() == true);
    sh(std::string("ip ") + option(family) + " rule del priority 99");
    CHECK(watch->take_changes());
    CHECK_FALSE(watch->take_changes());
    CHECK(addresses->has_rule() == false);
    REQUIRE(addresses->set_up());
    CHECK(addresses->has_rule() == true);
  }
}

TEST_CASE("an address is on the device, not local, and delivered when marked") {
  for (const Family family : kFamilies) {
    DYNAMIC_SECTION(net::to_string(family)) {
      enter_node();
      const auto addresses = set_up(family);
      const net::IpAddress a = vip(family, 1);
      const net::IpAddress b = vip(family, 2);
      const std::string suffix = family == Family::IPv4 ? "/32 host" : "/128 global";
      CHECK(delivered(a) == "unicast");

      change(*addresses, {{What::Bind, a}, {What::Bind, b}});
      CHECK(
          seen_addresses(family) ==
          std::set<std::string>{net::to_string(a) + suffix, net::to_string(b) + suffix});
      CHECK(listed(addresses->bound()) == Ips{a, b});
      CHECK(listed(addresses->local_routes()) == Ips{a, b});
      CHECK(seen_routes(family, "local", "kube-ipvs0") == Ips{a, b});
      CHECK(delivered(a) == "local");

      change(*addresses, {{What::MakeNotLocal, a}, {What::Route, a}});
      CHECK(listed(addresses->bound()) == Ips{a, b});
      CHECK(listed(addresses->local_routes()) == Ips{b});
      CHECK(listed(addresses->routes()) == Ips{a});
      CHECK(seen_routes(family, "local", "kube-ipvs0") == Ips{b});
      CHECK(seen_routes(family, "12112", "lo") == Ips{a});
      CHECK(delivered(a) == "unicast");
      CHECK(delivered(a, kMark) == "local");
      CHECK(delivered(a, kMark | 1) == "local");  // other bits are others' business
      CHECK(delivered(a, 1) == "unicast");
      CHECK(delivered(b) == "local");

      change(*addresses, {{What::MakeLocal, a}, {What::Unroute, a}});
      CHECK(delivered(a) == "local");
      CHECK(listed(addresses->local_routes()) == Ips{a, b});
      CHECK(listed(addresses->routes()).empty());
      CHECK(listed(addresses->bound()) == Ips{a, b});

      change(*addresses, {{What::MakeNotLocal, b}, {What::Unbind, a}, {What::Unbind, b}});
      CHECK(listed(addresses->bound()).empty());
      CHECK(seen_addresses(family).empty());
      CHECK(listed(addresses->local_routes()).empty());
      CHECK(delivered(a) == "unicast");
      CHECK(delivered(b) == "unicast");
    }
  }
}

TEST_CASE("what is so already is no failure") {
  for (const Family family : kFamilies) {
    enter_node();
    const auto addresses = set_up(family);
    const net::IpAddress a = vip(family, 1);
    for (const What what :
         {What::Bind,
          What::Route,
          What::MakeNotLocal,
          What::MakeLocal,
          What::Unroute,
          What::Unbind}) {
      for (int i = 0; i < 2; ++i) {
        CAPTURE(family, static_cast<int>(what), i);
        change(*addresses, {{what, a}});
      }
    }
    CHECK(listed(addresses->bound()).empty());
  }
}

TEST_CASE("what cannot be is named among changes that are made") {
  enter_node();
  const auto addresses = set_up(Family::IPv6);
  const net::IpAddress a = vip(Family::IPv6, 1);
  const net::IpAddress b = vip(Family::IPv6, 2);
  const auto refused = try_apply(
      *addresses,
      {{What::Bind, a},
       {What::Bind, ip("::1")},
       {What::MakeNotLocal, a},
       {What::Route, vip(Family::IPv4, 1)},
       {What::Bind, b}});
  REQUIRE(refused.size() == 2);
  CHECK(refused[0].index == 1);
  CHECK(refused[0].error.code == Errc::Invalid);
  CHECK(refused[0].error.what.starts_with("bind ::1: "));
  CHECK(refused[1].index == 3);
  CHECK(refused[1].error.code == Errc::Invalid);
  CHECK(listed(addresses->bound()) == Ips{a, b});
  CHECK(listed(addresses->local_routes()) == Ips{b});
}

TEST_CASE("without the device nothing is bound, and what goes is gone") {
  enter_node();
  const auto addresses = open(Family::IPv4);
  const net::IpAddress a = vip(Family::IPv4, 1);
  const auto refused = try_apply(
      *addresses,
      {{What::Unbind, a},
       {What::Bind, a},
       {What::Route, a},
       {What::MakeNotLocal, a},
       {What::MakeLocal, a}});
  REQUIRE(refused.size() == 2);
  CHECK(refused[0].index == 1);
  CHECK(refused[0].error.code == Errc::NotFound);
  CHECK(refused[1].index == 4);
  CHECK(listed(addresses->routes()) == Ips{a});
}

TEST_CASE("link-local addresses and networks on the device are others' business") {
  enter_node();
  const auto addresses = set_up(Family::IPv6);
  change(*addresses, {{What::Bind, vip(Family::IPv6, 1)}});
  sh("ip link set kube-ipvs0 up; ip address add fe80::1/64 dev kube-ipvs0 nodad;"
     "ip address add fd97::1/64 dev kube-ipvs0 nodad");
  CHECK(listed(addresses->bound()) == Ips{vip(Family::IPv6, 1)});
}

TEST_CASE("a family that goes leaves the other's addresses, and the last takes the device along") {
  enter_node();
  const auto v4 = set_up(Family::IPv4);
  const auto v6 = set_up(Family::IPv6);
  for (const Family family : kFamilies) {
    const net::IpAddress a = vip(family, 1);
    change(
        family == Family::IPv4 ? *v4 : *v6,
        {{What::Bind, a}, {What::MakeNotLocal, a}, {What::Route, a}});
  }
  REQUIRE(v4->tear_down());
  CHECK(rules(Family::IPv4) == 0);
  CHECK(seen_addresses(Family::IPv4).empty());
  CHECK(seen_routes(Family::IPv4, "12112", "lo").empty());
  CHECK(rules(Family::IPv6) == 1);
  CHECK(listed(v6->bound()) == Ips{vip(Family::IPv6, 1)});
  CHECK(listed(v6->routes()) == Ips{vip(Family::IPv6, 1)});

  for (int i = 0; i < 2; ++i) {
    REQUIRE(v6->tear_down());
    CHECK(device().is_null());
    CHECK(rules(Family::IPv6) == 0);
    CHECK(seen_routes(Family::IPv6, "12112", "lo").empty());
    CHECK(listed(v6->bound()).empty());
  }
}

TEST_CASE("three thousand addresses are bound, told apart from local ones, listed and removed") {
  for (const Family family : kFamilies) {
    enter_node();
    const auto addresses = set_up(family);
    std::vector<Change> changes;
    Ips all;
    for (unsigned n = 1; n <= 3000; ++n) {
      all.push_back(vip(family, n));
      for (const What what : {What::Bind, What::MakeNotLocal, What::Route}) {
        changes.push_back({what, all.back()});
      }
    }
    change(*addresses, changes);
    CHECK(listed(addresses->bound()) == all);
    CHECK(listed(addresses->routes()) == all);
    CHECK(listed(addresses->local_routes()).empty());
    CHECK(seen_addresses(family).size() == all.size());
    REQUIRE(addresses->tear_down());
    CHECK(device().is_null());
    CHECK(listed(addresses->routes()).empty());
  }
}

}  // namespace
}  // namespace shunt::netlink
