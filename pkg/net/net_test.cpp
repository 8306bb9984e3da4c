#include <catch2/catch_test_macros.hpp>

#include "net/cidr.h"
#include "net/socket_address.h"

namespace shunt::net {
namespace {

std::string canonical(std::string_view text) {
  const auto ip = parse_ip(text);
  return ip ? to_string(*ip) : "refused";
}

TEST_CASE("addresses are parsed sloppily and printed canonically") {
  CHECK(canonical("10.0.0.1") == "10.0.0.1");
  CHECK(canonical("172.030.000.041") == "172.30.0.41");
  CHECK(canonical("FD00:0:0::0001") == "fd00::1");
  CHECK(canonical("::ffff:10.1.2.3") == "10.1.2.3");
  for (const char* bad :
       {"",
        "10.0.0",
        "10.0.0.1.2",
        "10.0.0.256",
        "10..0.1",
        "10.0.0.1 ",
        "0x10.0.0.1",
        "fe80::1%eth0",
        "::g",
        "1.2.3.-4"}) {
    CHECK(canonical(bad) == "refused");
  }
}

TEST_CASE("prefixes are normalised to their network") {
  const auto text = [](std::string_view s) {
    const auto cidr = parse_cidr(s);
    return cidr ? to_string(*cidr) : "refused";
  };
  CHECK(text("10.20.30.40/16") == "10.20.0.0/16");
  CHECK(text("203.0.113.000/025") == "203.0.113.0/25");
  CHECK(text("fd00::1/64") == "fd00::/64");
  CHECK(text("::ffff:10.1.2.3/104") == "10.0.0.0/8");
  CHECK(text("0.0.0.0/0") == "0.0.0.0/0");
  for (const char* bad :
       {"10.0.0.0", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "fd00::/129", "/8"}) {
    CHECK(text(bad) == "refused");
  }
}

TEST_CASE("ranges merge when they overlap or touch") {
  const auto ranges = [](std::initializer_list<const char*> texts) {
    std::vector<Cidr> cidrs;
    for (const char* t : texts) {
      cidrs.push_back(*parse_cidr(t));
    }
    std::string out;
    for (const IpRange& r : merged_ranges(cidrs)) {
      out += to_string(r.first) + "-" + to_string(r.last) + " ";
    }
    return out;
  };
  CHECK(ranges({"10.0.1.0/24", "10.0.0.0/24"}) == "10.0.0.0-10.0.1.255 ");
  CHECK(
      ranges({"10.0.0.0/8", "10.1.0.0/16", "11.0.1.0/24"}) ==
      "10.0.0.0-10.255.255.255 11.0.1.0-11.0.1.255 ");
  CHECK(ranges({"255.255.255.0/24", "255.255.255.255/32"}) == "255.255.255.0-255.255.255.255 ");
  CHECK(ranges({"fd00::/112", "fd00::1:0/112"}) == "fd00::-fd00::1:ffff ");
}

TEST_CASE("socket addresses print and parse back") {
  for (const char* text : {"10.0.0.1:80", "[fd00::1]:65535"}) {
    CHECK(to_string(*parse_socket_address(text)) == text);
  }
  for (const char* bad :
       {"10.0.0.1", "[10.0.0.1]:80", "fd00::1:80", "10.0.0.1:", "10.0.0.1:65536", "10.0.0.1:8x"}) {
    CHECK_FALSE(parse_socket_address(bad));
  }
}

TEST_CASE("link-local is fe80::/10 and nothing else") {
  CHECK(is_link_local(*parse_ip("fe80::1")));
  CHECK(is_link_local(*parse_ip("febf::1")));
  CHECK_FALSE(is_link_local(*parse_ip("fec0::1")));
  CHECK_FALSE(is_link_local(*parse_ip("169.254.0.1")));
}

TEST_CASE("an address is in some of the ranges, in the last of them, or in none") {
  const std::vector<Cidr> ranges{*parse_cidr("10.0.0.0/8"), *parse_cidr("fd00::/8")};
  CHECK(any_contains(ranges, *parse_ip("10.1.2.3")));
  CHECK(any_contains(ranges, *parse_ip("fd00::1")));
  CHECK_FALSE(any_contains(ranges, *parse_ip("11.0.0.1")));
  CHECK_FALSE(any_contains({}, *parse_ip("10.0.0.1")));
}

}  // namespace
}  // namespace shunt::net
