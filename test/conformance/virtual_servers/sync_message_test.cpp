#include "virtual_servers/sync_message.h"

#include <catch2/catch_test_macros.hpp>

namespace shunt::conformance::virtual_servers {
namespace {

net::SocketAddress address(const char* text) { return net::parse_socket_address(text).value(); }

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) {
    out.push_back(static_cast<char>(value));
  }
  return out;
}

TEST_CASE("a connection in the kernel's own words") {
  Connection connection;
  connection.client = address("198.51.100.50:20001");
  connection.server = address("10.112.30.1:80");
  connection.real = address("10.64.0.31:8080");
  connection.timeout = std::chrono::seconds(900);
  CHECK(
      sync_message(7, {connection}) ==
      bytes({// header: version 0's count, id, size, count, version
             0,
             7,
             0,
             44,
             1,
             1,
             0,
             0,
             // IPv4, TCP, size; no flags
             0,
             6,
             0,
             36,
             0,
             0,
             0,
             0,
             // established; ports of client, virtual and real server
             0,
             1,
             0x4e,
             0x21,
             0,
             80,
             0x1f,
             0x90,
             // mark, timeout
             0,
             0,
             0,
             0,
             0,
             0,
             3,
             0x84,
             198,
             51,
             100,
             50,
             10,
             112,
             30,
             1,
             10,
             64,
             0,
             31}));
}

TEST_CASE("inactive ones carry the flag, IPv6 ones the type, and all the whole size") {
  Connection connection;
  connection.protocol = net::Protocol::Udp;
  connection.client = address("[2001:db8:e::50]:20001");
  connection.server = address("[fdc0::1]:53");
  connection.real = address("[fd64::1]:5353");
  connection.active = false;
  const std::string message = sync_message(1, {connection, connection});
  CHECK(message.size() == 8 + 2 * 72);
  CHECK(message.substr(2, 3) == bytes({0, 152, 2}));
  CHECK(message.substr(8, 10) == bytes({1, 17, 0, 72, 0, 0, 1, 0, 0, 0}));
}

}  // namespace
}  // namespace shunt::conformance::virtual_servers
