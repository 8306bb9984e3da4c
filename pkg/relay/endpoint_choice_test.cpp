#include "relay/endpoint_choice.h"

#include <catch2/catch_test_macros.hpp>
#include <set>

namespace shunt::relay {
namespace {

using std::chrono::seconds;

net::SocketAddress address(const char* text) { return *net::parse_socket_address(text); }

desired::EndpointListPtr list(const std::vector<const char*>& texts) {
  desired::EndpointList out;
  for (const char* text : texts) {
    out.push_back(address(text));
  }
  return std::make_shared<const desired::EndpointList>(std::move(out));
}

const Clock::time_point kStart{};

TEST_CASE("without endpoints there is nothing to choose") {
  EndpointChoice choice;
  CHECK_FALSE(choice.next(kStart, 0));
  choice.set(list({}), std::nullopt);
  CHECK_FALSE(choice.any());
  CHECK_FALSE(choice.next(kStart, 0.5));
}

TEST_CASE("chance reaches every endpoint, whatever number it gives") {
  EndpointChoice choice;
  choice.set(list({"10.64.0.1:80", "10.64.0.2:80", "10.64.0.3:80"}), std::nullopt);
  std::set<net::SocketAddress> seen;
  for (const double random : {0.0, 0.34, 0.5, 0.67, 0.999999999999}) {
    seen.insert(choice.next(kStart, random).value());
  }
  CHECK(seen.size() == 3);
  CHECK(choice.next(kStart, 1.0) == address("10.64.0.3:80"));  // a bad source of chance
}

TEST_CASE("loopback and unspecified addresses are no endpoints") {
  EndpointChoice choice;
  choice.set(list({"0.0.0.0:80", "127.0.0.1:80"}), std::nullopt);
  CHECK_FALSE(choice.any());
  choice.set(list({"10.64.0.1:80", "127.0.0.1:80"}), std::nullopt);
  for (const double random : {0.0, 0.4, 0.6, 0.99}) {
    CHECK(choice.next(kStart, random) == address("10.64.0.1:80"));
  }
  CHECK_FALSE(choice.contains(address("127.0.0.1:80")));
}

TEST_CASE("with affinity an endpoint stays until nobody asked for the timeout") {
  EndpointChoice choice;
  choice.set(list({"10.64.0.1:80", "10.64.0.2:80"}), seconds(10));
  CHECK(choice.next(kStart, 0.9) == address("10.64.0.2:80"));
  CHECK(choice.next(kStart + seconds(9), 0) == address("10.64.0.2:80"));
  CHECK(choice.next(kStart + seconds(18), 0) == address("10.64.0.2:80"));
  CHECK(choice.next(kStart + seconds(28), 0) == address("10.64.0.1:80"));
}

TEST_CASE("affinity ends with its endpoint, and with the setting") {
  EndpointChoice choice;
  const auto both = list({"10.64.0.1:80", "10.64.0.2:80"});
  choice.set(both, seconds(10));
  CHECK(choice.next(kStart, 0.9) == address("10.64.0.2:80"));
  SECTION("another endpoint leaves: it stays") {
    choice.set(list({"10.64.0.2:80", "10.64.0.7:80"}), seconds(10));
    CHECK(choice.next(kStart, 0.9) == address("10.64.0.2:80"));
  }
  SECTION("the endpoint leaves, and is forgotten even if it comes back") {
    choice.set(list({"10.64.0.1:80"}), seconds(10));
    CHECK(choice.next(kStart, 0.9) == address("10.64.0.1:80"));
    choice.set(both, seconds(10));
    CHECK(choice.next(kStart, 0.9) == address("10.64.0.1:80"));
  }
  SECTION("the Service wants none any more") {
    choice.set(both, std::nullopt);
    CHECK(choice.next(kStart, 0) == address("10.64.0.1:80"));
  }
}

}  // namespace
}  // namespace shunt::relay
