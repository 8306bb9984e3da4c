// What is said to the kernel about virtual servers, byte by byte, and what is understood of its
// answers. test/kernel/ipvs_wire_test.cpp asks the kernel itself.
#include "netlink/ipvs_wire.h"

#include <linux/netlink.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>

namespace shunt::netlink::ipvs {
namespace {

using Bytes = std::vector<std::uint8_t>;
using std::chrono::seconds;

net::SocketAddress at(const char* text) { return net::parse_socket_address(text).value(); }

const ServerKey kWeb{at("10.96.0.1:443"), net::Protocol::Tcp};
const ServerKey kDns{at("[fd00::a]:53"), net::Protocol::Udp};

std::span<const std::uint8_t> payload(const Requests& requests) {
  return requests[0].subspan(NLMSG_HDRLEN);
}

Bytes bytes(std::span<const std::uint8_t> some) { return {some.begin(), some.end()}; }

// What the kernel answers has the same attributes as what it is told, in the same nests.
std::optional<Server> told_back(const Server& server) {
  Requests requests;
  encode(requests, Verb::NewServer, server);
  return decode_server(payload(requests));
}

// "06 00 01 00 ..."
std::string hex(std::span<const std::uint8_t> some) {
  std::string out;
  for (const std::uint8_t byte : some) {
    constexpr char kDigits[] = "0123456789abcdef";
    out.append(out.empty() ? "" : " ");
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

TEST_CASE("a virtual server is told to the kernel with all that it asks for") {
  Requests requests;
  encode(requests, Verb::NewServer, {kWeb, "mh", kPersistent | kHashPort, seconds(10800)});
  CHECK(hex(requests[0].first(NLMSG_HDRLEN)) == "5c 00 00 00 00 00 01 00 00 00 00 00 00 00 00 00");
  CHECK(
      hex(payload(requests)) ==
      "01 01 00 00"                           // NEW_SERVICE, version 1
      " 48 00 01 80"                          // nest SERVICE
      " 06 00 01 00 02 00 00 00"              // AF_INET
      " 06 00 02 00 06 00 00 00"              // TCP
      " 08 00 03 00 0a 60 00 01"              // address
      " 06 00 04 00 01 bb 00 00"              // port, big endian
      " 07 00 06 00 6d 68 00 00"              // scheduler, with its NUL
      " 0c 00 07 00 11 00 00 00 ff ff ff ff"  // flags, and which of them are meant
      " 08 00 08 00 30 2a 00 00"              // timeout
      " 08 00 09 00 ff ff ff ff");            // netmask
}

TEST_CASE("a destination is told with its virtual server") {
  Requests requests;
  encode(requests, Verb::SetDestination, kDns, Destination{at("[fd00::b]:5353"), 7});
  CHECK(
      hex(payload(requests)) ==
      "06 01 00 00"               // SET_DEST
      " 30 00 01 80"              // nest SERVICE
      " 06 00 01 00 0a 00 00 00"  // AF_INET6
      " 06 00 02 00 11 00 00 00"  // UDP
      " 14 00 03 00 fd 00 00 00 00 00 00 00 00 00 00 00 00 00 00 0a"
      " 06 00 04 00 00 35 00 00"
      " 48 00 02 80"  // nest DEST
      " 14 00 01 00 fd 00 00 00 00 00 00 00 00 00 00 00 00 00 00 0b"
      " 06 00 02 00 14 e9 00 00"
      " 06 00 0b 00 0a 00 00 00"  // its family
      " 08 00 03 00 00 00 00 00"  // masquerading
      " 08 00 04 00 07 00 00 00"  // weight
      " 08 00 05 00 00 00 00 00"  // thresholds: none
      " 08 00 06 00 00 00 00 00");
}

TEST_CASE("what is told of a virtual server is understood again") {
  const Server cases[] = {
      {kWeb, "rr", 0, seconds(0), 0},
      {kDns, "mh", kPersistent | kHashPort, seconds(60), 0},
      {kWeb, "wlc", kPersistent, seconds(86400), 0xffffff00},
      {kDns, "sh", 0, seconds(0), 64},
      {{at("10.96.0.2:0"), net::Protocol::Sctp}, "a name as long", 0x4, seconds(1), 0}};
  for (const Server& server : cases) {
    CHECK(told_back(server) == server);
  }
}

TEST_CASE("the kernel's own flag is neither said nor heard") {
  CHECK(told_back({kWeb, "rr", 0x3})->flags == kPersistent);
  Requests requests;
  encode(requests, Verb::NewServer, {kWeb, "rr"});
  Bytes answer = bytes(payload(requests));
  const Bytes flags{12, 0, 7, 0};
  const auto found = std::search(answer.begin(), answer.end(), flags.begin(), flags.end());
  REQUIRE(found != answer.end());
  *(found + 4) = 0x2;
  CHECK(decode_server(answer) == Server{kWeb, "rr"});
}

TEST_CASE("times that no kernel holds are the longest it can be asked for, or none") {
  CHECK(told_back({kWeb, "rr", 1, seconds(1L << 40)})->timeout == seconds(0xffffffff));
  CHECK(told_back({kWeb, "rr", 1, seconds(-5)})->timeout == seconds(0));
}

TEST_CASE("addresses of IPv4 come back as the first 4 of 16 bytes") {
  Requests requests;
  requests.begin(Requests::kGenericFamily, 0, std::uint32_t{0x0105});
  const std::size_t nest = requests.nest(2);
  requests.put(1, Bytes{10, 64, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  requests.put_be16(2, 8080);
  requests.put_u32(3, 0);
  requests.put_u32(4, 3);
  requests.put_u32(7, 5);
  requests.put_u32(8, 9);
  requests.end_nest(nest);  // and, of a kernel before 3.18, no family
  requests.end();
  const auto got = decode_destination(payload(requests), net::Family::IPv4);
  REQUIRE(got);
  CHECK(got->address == at("10.64.0.1:8080"));
  CHECK(got->weight == 3);
  CHECK(got->active_connections == 5);
  CHECK(got->inactive_connections == 9);
}

TEST_CASE("virtual servers that we have no word for are passed over") {
  struct {
    const char* name;
    std::uint16_t family;
    std::uint16_t protocol;
    bool mark;
    bool understood;
  } const cases[] = {
      {"one of ours", 2, 6, false, true},
      {"another family", 7, 6, false, false},
      {"another protocol", 2, 50, false, false},
      {"found by a mark", 2, 6, true, false},
      {"a number that is TCP's if one looks at eight bits", 2, 256 + 6, false, false}};
  for (const auto& one : cases) {
    DYNAMIC_SECTION(one.name) {
      Requests requests;
      requests.begin(Requests::kGenericFamily, 0, std::uint32_t{0x0101});
      const std::size_t nest = requests.nest(1);
      requests.put_u16(1, one.family);
      requests.put_u16(2, one.protocol);
      requests.put(3, Bytes(16, 1));
      requests.put_be16(4, 80);
      if (one.mark) {
        requests.put_u32(5, 1);
      }
      requests.put_string(6, "rr");
      requests.put(7, Bytes{2, 0, 0, 0, 255, 255, 255, 255});
      requests.end_nest(nest);
      requests.end();
      CHECK(decode_server(payload(requests)).has_value() == one.understood);
    }
  }
}

// Under the address sanitizer a read beyond the end is seen.
TEST_CASE("answers that are cut short or scrambled are passed over or understood, and no more") {
  Requests requests;
  encode(requests, Verb::NewDestination, kWeb, Destination{at("10.64.0.1:8080"), 1});
  encode(requests, Verb::NewServer, {kDns, "rr"});
  std::mt19937 random(6);  // NOLINT(cert-msc51-cpp): the same every time
  for (std::size_t i = 0; i < requests.count(); ++i) {
    const Bytes whole = bytes(requests[i]);
    for (std::size_t length = 0; length <= whole.size(); ++length) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      (void)describe(cut);
      const AttributeBytes rest = AttributeBytes(cut).subspan(std::min<std::size_t>(length, 16));
      (void)decode_timeouts(rest);
      (void)decode_destination(rest, net::Family::IPv6);
      // Its last attribute is the netmask, which need not be there.
      CHECK((!decode_server(rest) || (i == 1 && length + 16 >= whole.size())));
    }
    for (int n = 0; n < 5000; ++n) {
      Bytes scrambled = whole;
      scrambled[random() % scrambled.size()] = static_cast<std::uint8_t>(random());
      scrambled[random() % scrambled.size()] = static_cast<std::uint8_t>(random());
      (void)describe(scrambled);
      (void)decode_server(AttributeBytes(scrambled).subspan(16));
      (void)decode_destination(AttributeBytes(scrambled).subspan(16), net::Family::IPv4);
    }
  }
}

TEST_CASE("a command that was refused is told by name") {
  Requests requests;
  encode(requests, Verb::NewServer, {kDns, "rr"});
  encode(requests, Verb::DeleteDestination, kWeb, at("10.64.0.1:8080"));
  CHECK(describe(requests[0]) == "add virtual server UDP [fd00::a]:53");
  CHECK(
      describe(requests[1]) ==
      "remove destination 10.64.0.1:8080 of virtual server TCP 10.96.0.1:443");
}

TEST_CASE("commands are counted and forgotten") {
  Commands commands;
  CHECK(commands.empty());
  commands.add(Server{kWeb, "rr"});
  commands.add(kWeb, Destination{at("10.64.0.1:8080")});
  commands.remove(kWeb, at("10.64.0.1:8080"));
  commands.remove(kWeb);
  CHECK(commands.size() == 4);
  commands.clear();
  CHECK(commands.empty());
}

}  // namespace
}  // namespace shunt::netlink::ipvs
