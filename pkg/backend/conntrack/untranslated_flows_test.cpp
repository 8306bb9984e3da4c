#include "backend/conntrack/untranslated_flows.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <string>

namespace shunt::backend::conntrack {
namespace {

using net::Protocol;

net::SocketAddress address(const std::string& text) {
  return net::parse_socket_address(text).value();
}
desired::FrontendKey key(const std::string& text, Protocol protocol) {
  const net::SocketAddress at = address(text);
  return {at.ip, protocol, at.port};
}

// A SYN that nobody answered, and that went where it was sent.
Flow lost(const std::string& to, Protocol protocol = Protocol::Tcp) {
  const net::SocketAddress client =
      address(to[0] == '[' ? "[2001:db8:e::7]:40000" : "198.51.100.7:40000");
  return {static_cast<std::uint8_t>(protocol), {client, address(to)}, {address(to), client}, false};
}

TEST_CASE("flows to frontends that met no rules and no answer are untranslated, others are not") {
  std::vector<desired::FrontendKey> frontends{
      key("10.96.0.1:80", Protocol::Tcp),
      key("10.96.0.1:53", Protocol::Udp),
      key("10.96.0.1:90", Protocol::Sctp),
      key("[fdc0::1]:80", Protocol::Tcp),
      key("0.0.0.0:30080", Protocol::Tcp)};
  std::sort(frontends.begin(), frontends.end());
  const LocalAddresses local{net::parse_ip("10.80.0.10").value()};
  const auto is = [&](const Flow& flow) { return is_untranslated(flow, frontends, local); };

  CHECK(is(lost("10.96.0.1:80")));
  CHECK(is(lost("10.96.0.1:53", Protocol::Udp)));
  CHECK(is(lost("10.96.0.1:90", Protocol::Sctp)));
  CHECK(is(lost("[fdc0::1]:80")));
  CHECK(is(lost("10.80.0.10:30080")));

  CHECK_FALSE(is(lost("10.96.0.1:81")));
  CHECK_FALSE(is(lost("10.96.0.2:80")));
  CHECK_FALSE(is(lost("10.96.0.1:80", Protocol::Udp)));
  CHECK_FALSE(is(lost("203.0.113.5:30080")));  // a stranger's port of that number
  CHECK_FALSE(is(lost("10.80.0.10:30080", Protocol::Udp)));

  Flow other = lost("10.96.0.1:80");
  other.answered = true;
  CHECK_FALSE(is(other));
  other = lost("10.96.0.1:80");
  other.reply.from = address("10.64.0.1:8080");
  CHECK_FALSE(is(other));
  other.reply.from = address("10.96.0.1:81");
  CHECK_FALSE(is(other));
  other = lost("10.96.0.1:80");
  other.protocol = 1;
  CHECK_FALSE(is(other));
}

}  // namespace
}  // namespace shunt::backend::conntrack
