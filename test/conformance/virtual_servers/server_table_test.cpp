#include "virtual_servers/server_table.h"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

namespace shunt::conformance::virtual_servers {
namespace {

using nlohmann::json;

TEST_CASE("what ipvsadm saves is read as a case writes it") {
  const json table = parse_saved(
      "-A -t 10.112.30.1:80 -s rr\n"
      "-a -t 10.112.30.1:80 -r 10.64.0.31:8080 -m -w 1\n"
      "-a -t 10.112.30.1:80 -r 10.64.1.31:8080 -m -w 0\n"
      "-A -u [fdc0::1]:53 -s mh -p 90 -b mh-port\n"
      "-a -u [fdc0::1]:53 -r [fd64::1]:5353 -m -w 3\n"
      "-A --sctp-service 10.112.30.2:80 -s wlc\n");
  CHECK(
      table ==
      json{
          {"10.112.30.1:80/TCP",
           {{"scheduler", "rr"}, {"reals", {{"10.64.0.31:8080", 1}, {"10.64.1.31:8080", 0}}}}},
          {"[fdc0::1]:53/UDP",
           {{"scheduler", "mh"},
            {"affinitySeconds", 90},
            {"hashesSourcePort", true},
            {"reals", {{"[fd64::1]:5353", 3}}}}},
          {"10.112.30.2:80/SCTP", {{"scheduler", "wlc"}, {"reals", json::object()}}}});
  CHECK(parse_saved(to_saved(table)) == table);
}

TEST_CASE("what a case leaves out of a server is its default") {
  const json table = canonical_table(
      {{"[FDC0:0::1]:80/TCP", {{"reals", {{"[fd64:0::1]:8080", 1}}}, {"hashesSourcePort", false}}},
       {"10.112.30.1:80/TCP", json::object()}});
  CHECK(
      table == json{
                   {"[fdc0::1]:80/TCP", {{"scheduler", "rr"}, {"reals", {{"[fd64::1]:8080", 1}}}}},
                   {"10.112.30.1:80/TCP", {{"scheduler", "rr"}, {"reals", json::object()}}}});
}

TEST_CASE("what a case cannot say shows as a difference") {
  const json table = parse_saved(
      "-A -t 10.112.30.1:80 -s sh -p 30 -M 255.255.255.0 -b sh-fallback,sh-port\n"
      "-a -t 10.112.30.1:80 -r 10.64.0.31:80 -g -w 1\n");
  const json& server = table.at("10.112.30.1:80/TCP");
  CHECK(server.at("netmask") == "255.255.255.0");
  CHECK(server.at("flags") == "sh-fallback,sh-port");
  CHECK(server.at("reals").at("10.64.0.31:80") == "weight 1, forwarding -g");
}

TEST_CASE("a line that is not understood is no line to pass over") {
  for (const char* const line :
       {"-A -f 1 -s rr",
        "-A -t 10.112.30.1:80 -s rr --ops",
        "-A -t 10.112.30.1:80 -s",
        "-C",
        "-A -t 10.112.30.1:80 -s rr\n-a -t 10.112.30.1:80 -r 10.64.0.31:80 -m -w x"}) {
    INFO(line);
    CHECK_THROWS_AS(parse_saved(line), std::invalid_argument);
  }
}

TEST_CASE("connections are counted by virtual and real server") {
  const CountsByReal counts = parse_counts(
      "IP Virtual Server version 1.2.1 (size=4096)\n"
      "Prot LocalAddress:Port Scheduler Flags\n"
      "  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn\n"
      "TCP  10.112.30.1:80 rr\n"
      "  -> 10.64.0.31:8080              Masq    1      10         2         \n"
      "UDP  [fdc0::1]:53 rr persistent 90\n"
      "  -> [fd64::1]:5353               Masq    0      0          7         \n");
  const ServerName one = parse_server_name("10.112.30.1:80/TCP");
  const ServerName two = parse_server_name("[fdc0::1]:53/UDP");
  CHECK(counts.size() == 2);
  const auto of = [&](const ServerName& server, const char* real) {
    return counts.at({server, net::parse_socket_address(real).value()});
  };
  CHECK(of(one, "10.64.0.31:8080") == Counts{10, 2});
  CHECK(of(two, "[fd64::1]:5353") == Counts{0, 7});
}

}  // namespace
}  // namespace shunt::conformance::virtual_servers
