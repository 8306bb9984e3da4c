#include "backend/ipvs/withdrawal_plan.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

namespace shunt::backend::ipvs {
namespace {

using netlink::ipvs::Destination;
using netlink::ipvs::ServerKey;

net::IpAddress ip(const char* text) { return net::parse_ip(text).value(); }
net::SocketAddress at(const char* text) { return net::parse_socket_address(text).value(); }
ServerKey tcp(const char* address) { return {at(address), net::Protocol::Tcp}; }
ServerKey udp(const char* address) { return {at(address), net::Protocol::Udp}; }
Destination destination(
    const char* address,
    std::uint32_t weight,
    std::uint32_t active = 0,
    std::uint32_t inactive = 0) {
  Destination out;
  out.address = at(address);
  out.weight = weight;
  out.active_connections = active;
  out.inactive_connections = inactive;
  return out;
}

// A node that has the address of a Service, an address of its own, and the device.
Holdings node() {
  Holdings out;
  out.device = true;
  out.bound = {ip("10.96.0.10")};
  out.host = {ip("10.96.0.10"), ip("127.0.0.1"), ip("192.0.2.1")};
  return out;
}
const std::vector<net::Cidr> kNothingExcluded;

std::vector<net::SocketAddress> silenced(const Withdrawing& todo) {
  std::vector<net::SocketAddress> out;
  for (const auto& [server, one] : todo.silence) {
    CHECK(one.weight == 0);
    out.push_back(one.address);
  }
  return out;
}

// What the kernel holds after it obeyed.
Holdings obeyed(Holdings held, const Withdrawing& todo) {
  for (Holdings::OfServer& one : held.servers) {
    for (Destination& destination : one.destinations) {
      for (const auto& [server, silent] : todo.silence) {
        if (server == one.server && silent.address == destination.address) {
          destination.weight = silent.weight;
        }
      }
    }
    std::erase_if(one.destinations, [&](const Destination& destination) {
      return std::ranges::count(todo.destinations, std::pair(one.server, destination.address)) != 0;
    });
  }
  std::erase_if(held.servers, [&](const Holdings::OfServer& one) {
    return std::ranges::count(todo.servers, one.server) != 0;
  });
  std::erase_if(held.bound, [&](const net::IpAddress& address) {
    return std::ranges::count(todo.addresses, address) != 0;
  });
  return held;
}

TEST_CASE("first nothing new comes: every weight becomes 0, and nothing goes yet") {
  Holdings held = node();
  held.servers = {
      {tcp("10.96.0.10:80"), {destination("10.1.0.1:8080", 1), destination("10.1.0.2:8080", 5, 3)}},
      {udp("192.0.2.1:30053"), {destination("10.1.0.3:53", 1, 0, 2)}}};
  const Withdrawing todo = withdraw(held, kNothingExcluded);
  CHECK(silenced(todo) == std::vector{at("10.1.0.1:8080"), at("10.1.0.2:8080"), at("10.1.0.3:53")});
  CHECK(todo.destinations.empty());
  CHECK(todo.servers.empty());
  CHECK(todo.addresses.empty());
}

TEST_CASE("then what has no connections goes, and what has some stays") {
  Holdings held = node();
  held.servers = {
      {tcp("10.96.0.10:80"),
       {destination("10.1.0.1:8080", 0),
        destination("10.1.0.2:8080", 0, 1),
        destination("10.1.0.3:8080", 0, 0, 1)}},
      {tcp("10.96.0.10:81"), {destination("10.1.0.1:8080", 0)}},
      {tcp("10.96.0.10:82"), {}}};
  const Withdrawing todo = withdraw(held, kNothingExcluded);
  CHECK(todo.silence.empty());
  CHECK(todo.destinations == std::vector{std::pair(tcp("10.96.0.10:80"), at("10.1.0.1:8080"))});
  CHECK(todo.servers == std::vector{tcp("10.96.0.10:81"), tcp("10.96.0.10:82")});
  CHECK(todo.addresses.empty());  // 10.96.0.10 is served still
  CHECK(remaining(held, kNothingExcluded) == Remaining{3, 4, 2, 1, 0});
}

TEST_CASE("flows of UDP count as connections") {
  Holdings held = node();
  held.servers = {{udp("10.96.0.10:53"), {destination("10.1.0.1:53", 0, 0, 1)}}};
  CHECK(withdraw(held, kNothingExcluded).empty());
  held.servers[0].destinations[0].inactive_connections = 0;
  CHECK(withdraw(held, kNothingExcluded).servers.size() == 1);
}

TEST_CASE("an address leaves the device when nobody serves it any more") {
  Holdings held = node();
  CHECK(withdraw(held, kNothingExcluded).addresses == std::vector{ip("10.96.0.10")});
  held.servers = {{tcp("10.96.0.10:80"), {destination("10.1.0.1:8080", 0, 1)}}};
  CHECK(withdraw(held, kNothingExcluded).addresses.empty());
}

TEST_CASE("without the device nothing is taken for Services'") {
  Holdings held = node();
  held.servers = {{tcp("192.0.2.1:80"), {destination("10.1.0.1:8080", 1)}}};
  held.device = false;
  held.bound.clear();
  CHECK(withdraw(held, kNothingExcluded).empty());
  CHECK(withdraw_now(held, kNothingExcluded).empty());
  CHECK(remaining(held, kNothingExcluded) == Remaining{});
}

TEST_CASE("others' servers stay: excluded ranges, loopback, addresses of other hosts") {
  const std::vector<net::Cidr> excluded{net::parse_cidr("10.96.9.0/24").value()};
  Holdings held = node();
  held.bound = {ip("10.96.0.10"), ip("10.96.9.1")};
  for (const char* address : {"10.96.9.1:80", "10.96.9.2:80", "127.0.0.1:80", "203.0.113.7:80"}) {
    held.servers.push_back({tcp(address), {destination("10.1.0.1:8080", 1)}});
  }
  for (const Withdrawing& todo : {withdraw(held, excluded), withdraw_now(held, excluded)}) {
    CHECK(todo.silence.empty());
    CHECK(todo.destinations.empty());
    CHECK(todo.servers.empty());
    CHECK(todo.addresses == std::vector{ip("10.96.0.10")});
  }
  CHECK(remaining(held, excluded) == Remaining{0, 0, 0, 1, 1});
}

TEST_CASE("at once, everything of Services goes, connections or not") {
  Holdings held = node();
  held.servers = {
      {tcp("10.96.0.10:80"), {destination("10.1.0.1:8080", 1, 7)}}, {tcp("203.0.113.7:80"), {}}};
  const Withdrawing todo = withdraw_now(held, kNothingExcluded);
  CHECK(todo.servers == std::vector{tcp("10.96.0.10:80")});
  CHECK(todo.addresses == std::vector{ip("10.96.0.10")});
  const Holdings after = obeyed(held, todo);
  CHECK(withdraw_now(after, kNothingExcluded).empty());
}

TEST_CASE("from any state, obeying leads to nothing left, and nothing is done twice") {
  Holdings held = node();
  held.bound = {ip("10.96.0.10"), ip("10.96.0.11"), ip("10.96.0.12")};
  held.servers = {
      {tcp("10.96.0.10:80"), {destination("10.1.0.1:8080", 1, 1), destination("10.1.0.2:80", 0)}},
      {udp("10.96.0.10:80"), {destination("10.1.0.1:8080", 0, 0, 4)}},
      {tcp("10.96.0.11:80"), {destination("10.1.0.1:8080", 1)}},
      {tcp("192.0.2.1:30080"), {destination("10.1.0.1:8080", 1)}}};
  int looks = 0;
  for (; looks < 20; ++looks) {
    const Withdrawing todo = withdraw(held, kNothingExcluded);
    held = obeyed(held, todo);
    if (todo.empty()) {
      if (remaining(held, kNothingExcluded).connections == 0) {
        break;
      }
      for (Holdings::OfServer& one : held.servers) {  // the connections end
        for (Destination& destination : one.destinations) {
          destination.active_connections = destination.inactive_connections = 0;
        }
      }
    }
  }
  CHECK(looks < 10);
  CHECK(held.servers.empty());
  CHECK(held.bound.empty());
  CHECK(remaining(held, kNothingExcluded) == Remaining{});
}

}  // namespace
}  // namespace shunt::backend::ipvs
