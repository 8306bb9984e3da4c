// pkg/netlink/ipvs.h against the real kernel, and against what ipvsadm sees there.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <set>
#include <sstream>

#include "base/unique_fd.h"
#include "kernel/ipvs_world.h"

namespace shunt::netlink::ipvs {
namespace {

using namespace test::ipvs;  // NOLINT(google-build-using-namespace): a test's helper
using std::chrono::seconds;
using Lines = std::multiset<std::string>;

ServerKey tcp(const std::string& address) { return {at(address), net::Protocol::Tcp}; }

// What ipvsadm would have to be told to get what is there now.
Lines ipvsadm() {
  Lines out;
  std::istringstream text(sh("ipvsadm -Sn"));
  for (std::string line; std::getline(text, line);) {
    line.erase(line.find_last_not_of(' ') + 1);
    out.insert(line);
  }
  return out;
}

std::vector<Refused> send(Socket& socket, const Commands& commands) {
  std::vector<Refused> refused;
  const auto sent = socket.send(commands, refused);
  INFO((sent ? std::string() : sent.error().what));
  REQUIRE(sent);
  return refused;
}

void obeyed(Socket& socket, const Commands& commands) {
  const auto refused = send(socket, commands);
  INFO((refused.empty() ? std::string() : refused.front().error.what));
  REQUIRE(refused.empty());
}

std::vector<Server> servers(Socket& socket, net::Family family) {
  auto out = socket.servers(family);
  REQUIRE(out);
  std::sort(out->begin(), out->end());
  return std::move(*out);
}

std::vector<Destination> destinations(Socket& socket, const ServerKey& server) {
  auto out = socket.destinations(server);
  INFO((out ? std::string() : out.error().what));
  REQUIRE(out);
  return std::move(*out);
}

std::vector<std::string> destination_texts(Socket& socket, const ServerKey& server) {
  std::vector<std::string> out;
  for (const Destination& one : destinations(socket, server)) {
    out.push_back(net::to_string(one.address) + " " + std::to_string(one.weight));
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST_CASE("virtual servers of every protocol and family are what ipvsadm sees") {
  const auto socket = open_ipvs();
  const Server web{tcp("10.96.0.1:443"), "rr"};
  const Server dns{{at("10.96.0.10:53"), net::Protocol::Udp}, "wrr"};
  const Server diameter{{at("10.96.0.11:3868"), net::Protocol::Sctp}, "rr"};
  const Server web6{tcp("[fd96::1]:443"), "rr"};
  Commands commands;
  for (const Server& one : {web, dns, diameter, web6}) {
    commands.add(one);
  }
  commands.add(web.key, {at("10.64.0.1:8443"), 1});
  commands.add(web.key, {at("10.64.0.2:8443"), 0});
  commands.add(dns.key, {at("10.64.0.3:53"), 100});
  commands.add(web6.key, {at("[fd64::1]:8443"), 1});
  obeyed(*socket, commands);

  CHECK(
      ipvsadm() == Lines{
                       "-A -t 10.96.0.1:443 -s rr",
                       "-a -t 10.96.0.1:443 -r 10.64.0.1:8443 -m -w 1",
                       "-a -t 10.96.0.1:443 -r 10.64.0.2:8443 -m -w 0",
                       "-A -u 10.96.0.10:53 -s wrr",
                       "-a -u 10.96.0.10:53 -r 10.64.0.3:53 -m -w 100",
                       "-A --sctp-service 10.96.0.11:3868 -s rr",
                       "-A -t [fd96::1]:443 -s rr",
                       "-a -t [fd96::1]:443 -r [fd64::1]:8443 -m -w 1"});
  CHECK(servers(*socket, net::Family::IPv4) == std::vector{web, dns, diameter});
  CHECK(servers(*socket, net::Family::IPv6) == std::vector{web6});
  CHECK(
      destination_texts(*socket, web.key) ==
      std::vector<std::string>{"10.64.0.1:8443 1", "10.64.0.2:8443 0"});
  CHECK(destination_texts(*socket, diameter.key).empty());
  CHECK(destination_texts(*socket, web6.key) == std::vector<std::string>{"[fd64::1]:8443 1"});
}

TEST_CASE("persistence and the hashed port of mh are written and read") {
  const auto socket = open_ipvs();
  const Server sticky{tcp("10.96.0.1:80"), "rr", kPersistent, seconds(10800)};
  const Server hashed{tcp("10.96.0.2:80"), "mh", kHashPort};
  const Server both{tcp("[fd96::3]:80"), "mh", kHashPort | kPersistent, seconds(60)};
  Commands commands;
  commands.add(sticky);
  commands.add(hashed);
  commands.add(both);
  obeyed(*socket, commands);
  CHECK(servers(*socket, net::Family::IPv4) == std::vector{sticky, hashed});
  CHECK(servers(*socket, net::Family::IPv6) == std::vector{both});
  CHECK(
      ipvsadm() == Lines{
                       "-A -t 10.96.0.1:80 -s rr -p 10800",
                       "-A -t 10.96.0.2:80 -s mh -b mh-port",
                       "-A -t [fd96::3]:80 -s mh -p 60 -b mh-port"});
}

TEST_CASE("a virtual server and a destination are changed where they stand") {
  const auto socket = open_ipvs();
  Server web{tcp("10.96.0.1:80"), "rr", kPersistent, seconds(60)};
  Commands commands;
  commands.add(web);
  commands.add(web.key, {at("10.64.0.1:8080"), 1});
  commands.add(web.key, {at("10.64.0.2:8080"), 1});
  obeyed(*socket, commands);
  commands.clear();
  web.scheduler = "wrr";
  web.flags = 0;
  web.timeout = seconds(0);
  commands.change(web);
  commands.change(web.key, {at("10.64.0.2:8080"), 0});
  obeyed(*socket, commands);
  CHECK(servers(*socket, net::Family::IPv4) == std::vector{web});
  CHECK(
      ipvsadm() == Lines{
                       "-A -t 10.96.0.1:80 -s wrr",
                       "-a -t 10.96.0.1:80 -r 10.64.0.1:8080 -m -w 1",
                       "-a -t 10.96.0.1:80 -r 10.64.0.2:8080 -m -w 0"});
}

TEST_CASE("a virtual server goes with its destinations, a destination alone") {
  const auto socket = open_ipvs();
  const Server web{tcp("10.96.0.1:80"), "rr"};
  const Server web6{tcp("[fd96::1]:80"), "rr"};
  Commands commands;
  for (const Server& one : {web, web6}) {
    commands.add(one);
  }
  commands.add(web.key, {at("10.64.0.1:8080")});
  commands.add(web6.key, {at("[fd64::1]:8080")});
  commands.add(web6.key, {at("[fd64::2]:8080")});
  commands.remove(web.key);
  commands.remove(web6.key, at("[fd64::1]:8080"));
  obeyed(*socket, commands);
  CHECK(
      ipvsadm() ==
      Lines{"-A -t [fd96::1]:80 -s rr", "-a -t [fd96::1]:80 -r [fd64::2]:8080 -m -w 1"});
  CHECK(servers(*socket, net::Family::IPv4).empty());
  const auto gone = socket->destinations(web.key);
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code == Errc::NotFound);
}

TEST_CASE("what others made is read as it is, and what is found by a mark is left out") {
  const auto socket = open_ipvs();
  sh("ipvsadm -A -t 10.96.0.1:80 -s wlc -p 300 -M 255.255.255.0 &&"
     "ipvsadm -a -t 10.96.0.1:80 -r 10.64.0.1:80 -g -w 7 &&"
     "ipvsadm -A -u '[fd96::1]:80' -s rr -o &&"
     "ipvsadm -A -f 7 -s rr && ipvsadm -A -f 7 -6 -s rr");
  CHECK(
      servers(*socket, net::Family::IPv4) ==
      std::vector<Server>{{tcp("10.96.0.1:80"), "wlc", kPersistent, seconds(300), 0xffffff00}});
  const auto of_ipv6 = servers(*socket, net::Family::IPv6);
  REQUIRE(of_ipv6.size() == 1);
  CHECK(of_ipv6[0].flags == 0x4);  // one packet
  const auto read = destinations(*socket, tcp("10.96.0.1:80"));
  REQUIRE(read.size() == 1);
  CHECK(read[0].forwarding == 3);  // direct routing
  CHECK(read[0].weight == 7);
}

TEST_CASE("what the kernel refuses is named among a thousand commands that it obeys") {
  const auto socket = open_ipvs();
  Commands commands;
  const auto fill = [&](unsigned from, unsigned to) {
    for (unsigned n = from; n < to; ++n) {
      commands.add(Server{
          tcp("10.96." + std::to_string(n / 250) + "." + std::to_string(n % 250) + ":80"), "rr"});
    }
  };
  const ServerKey first = tcp("10.96.0.0:80");
  const ServerKey nobody = tcp("10.97.0.0:80");
  const Destination endpoint{at("10.64.0.1:8080")};
  struct Expected {
    std::size_t index;
    Errc code;
    const char* text;
  };
  std::vector<Expected> expected;
  const auto wrong = [&](Errc code, const char* text) {
    expected.push_back({commands.size() - 1, code, text});
  };
  fill(0, 300);
  commands.add(Server{first, "rr"});
  wrong(Errc::Exists, "add virtual server TCP 10.96.0.0:80: File exists");
  commands.add(Server{nobody, "nonesuch"});
  wrong(Errc::Unsupported, "add virtual server TCP 10.97.0.0:80: no such scheduler");
  commands.add(Server{nobody, "a name that no scheduler can have"});
  wrong(Errc::Invalid, nullptr);
  fill(300, 600);
  commands.change(Server{nobody, "rr"});
  wrong(Errc::NotFound, "change virtual server TCP 10.97.0.0:80: no such virtual server");
  commands.change(Server{first, "nonesuch"});
  wrong(Errc::Unsupported, nullptr);
  commands.remove(nobody);
  wrong(Errc::NotFound, nullptr);
  commands.add(nobody, endpoint);
  wrong(Errc::NotFound, nullptr);
  commands.add(first, endpoint);
  commands.add(first, endpoint);
  wrong(
      Errc::Exists,
      "add destination 10.64.0.1:8080 of virtual server TCP 10.96.0.0:80: File exists");
  fill(600, 1000);
  commands.change(first, Destination{at("10.64.0.2:8080")});
  wrong(Errc::NotFound, nullptr);
  commands.remove(first, at("10.64.0.2:8080"));
  wrong(Errc::NotFound, nullptr);
  commands.add(first, Destination{at("255.255.255.255:8080")});
  wrong(Errc::Invalid, nullptr);

  const auto refused = send(*socket, commands);
  REQUIRE(refused.size() == expected.size());
  for (std::size_t i = 0; i < refused.size(); ++i) {
    CAPTURE(i, refused[i].error.what);
    CHECK(refused[i].index == expected[i].index);
    CHECK(refused[i].error.code == expected[i].code);
    if (expected[i].text != nullptr) {
      CHECK(refused[i].error.what == expected[i].text);
    }
  }
  CHECK(servers(*socket, net::Family::IPv4).size() == 1000);
  CHECK(destination_texts(*socket, first) == std::vector<std::string>{"10.64.0.1:8080 1"});
}

TEST_CASE("every refusal is heard when all of many commands are refused") {
  const auto socket = open_ipvs();
  Commands commands;
  for (unsigned n = 0; n < 5000; ++n) {
    commands.remove(tcp("10.96.0.1:" + std::to_string(n + 1)));
  }
  const auto refused = send(*socket, commands);
  REQUIRE(refused.size() == 5000);
  CHECK(std::all_of(refused.begin(), refused.end(), [](const Refused& one) {
    return one.error.code == Errc::NotFound;
  }));
  CHECK(refused.back().index == 4999);
  CHECK(servers(*socket, net::Family::IPv4).empty());
}

TEST_CASE("who may not is told so, with the smaller buffers that he gets") {
  (void)open_ipvs();  // skips
  REQUIRE(::seteuid(65534) == 0);
  const auto socket = Socket::open();
  Commands commands;
  for (unsigned n = 0; n < 1000; ++n) {
    commands.add(Server{tcp("10.96.0.1:" + std::to_string(n + 1)), "rr"});
  }
  std::vector<Refused> refused;
  const auto sent = socket ? (*socket)->send(commands, refused) : fail("", socket.error());
  REQUIRE(::seteuid(0) == 0);
  REQUIRE(sent);
  REQUIRE(refused.size() == 1000);
  CHECK(std::all_of(refused.begin(), refused.end(), [](const Refused& one) {
    return one.error.code == Errc::Denied;
  }));
}

TEST_CASE("timeouts are set one by one, and zero keeps what is there") {
  const auto socket = open_ipvs();
  REQUIRE(socket->set_timeouts({seconds(1000), seconds(100), seconds(200)}));
  CHECK(sh("ipvsadm -L --timeout") == "Timeout (tcp tcpfin udp): 1000 100 200\n");
  REQUIRE(socket->set_timeouts({seconds(0), seconds(50), seconds(0)}));
  const auto read = socket->timeouts();
  REQUIRE(read);
  CHECK(read->tcp == seconds(1000));
  CHECK(read->tcp_fin == seconds(50));
  CHECK(read->udp == seconds(200));
  const auto refused = socket->set_timeouts({seconds(1L << 40), seconds(0), seconds(0)});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::Invalid);
}

TEST_CASE("two thousand virtual servers of ten destinations are written, listed and removed") {
  const auto socket = open_ipvs();
  constexpr unsigned kServers = 2000;
  constexpr unsigned kDestinations = 10;
  const auto key = [](unsigned n) {
    return n % 2 == 0
               ? tcp("10.96." + std::to_string(n / 250) + "." + std::to_string(n % 250) + ":80")
               : tcp("[fd96::" + std::to_string(n) + "]:80");
  };
  const auto endpoint = [](unsigned n, unsigned m) {
    return n % 2 == 0 ? at("10.64." + std::to_string(m) + "." + std::to_string(n % 250) + ":8080")
                      : at("[fd64::" + std::to_string(n) + ":" + std::to_string(m) + "]:8080");
  };
  Commands commands;
  for (unsigned n = 0; n < kServers; ++n) {
    commands.add(Server{key(n), "rr"});
    for (unsigned m = 0; m < kDestinations; ++m) {
      commands.add(key(n), Destination{endpoint(n % 250 * 2 + n % 2, m + 1)});
    }
  }
  obeyed(*socket, commands);
  CHECK(servers(*socket, net::Family::IPv4).size() == kServers / 2);
  CHECK(servers(*socket, net::Family::IPv6).size() == kServers / 2);
  CHECK(ipvsadm().size() == std::size_t{kServers} * (kDestinations + 1));
  for (const unsigned n : {0U, 1U, 1233U, 1998U, 1999U}) {
    CHECK(destinations(*socket, key(n)).size() == kDestinations);
  }
  commands.clear();
  for (unsigned n = 0; n < kServers; ++n) {
    commands.remove(key(n));
  }
  obeyed(*socket, commands);
  CHECK(ipvsadm().empty());
}

// A server and its clients at addresses of this namespace; IPVS stands between them.
class Node {
 public:
  Node() {
    sh("ip address add 10.64.0.1/32 dev lo; ip address add 10.96.0.1/32 dev lo");
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in own = address("10.64.0.1", 8080);
    REQUIRE(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0);
    REQUIRE(::listen(listener_.get(), 8) == 0);
  }

  // A connection to the virtual server; nothing when none comes about.
  UniqueFd connect() const {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const sockaddr_in to = address("10.96.0.1", 80);
    (void)::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);  // in progress
    pollfd listener{listener_.get(), POLLIN, 0};
    return ::poll(&listener, 1, 2000) == 1 ? std::move(fd) : UniqueFd();
  }
  UniqueFd accept() const {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(fd.get() >= 0);
    return fd;
  }

  static bool passes(const UniqueFd& from, const UniqueFd& to) {
    char byte = 'x';
    pollfd writable{from.get(), POLLOUT, 0};
    pollfd readable{to.get(), POLLIN, 0};
    return ::poll(&writable, 1, 2000) == 1 && ::send(from.get(), &byte, 1, MSG_NOSIGNAL) == 1 &&
           ::poll(&readable, 1, 2000) == 1 && ::recv(to.get(), &byte, 1, 0) == 1;
  }

 private:
  static sockaddr_in address(const char* ip, std::uint16_t port) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_port = htons(port);
    REQUIRE(::inet_pton(AF_INET, ip, &out.sin_addr) == 1);
    return out;
  }
  UniqueFd listener_;
};

TEST_CASE("connections are counted, and survive changes of their virtual server") {
  const auto socket = open_ipvs();
  const Node node;
  Server web{tcp("10.96.0.1:80"), "rr"};
  const net::SocketAddress endpoint = at("10.64.0.1:8080");
  Commands commands;
  commands.add(web);
  commands.add(web.key, Destination{endpoint});
  obeyed(*socket, commands);

  const UniqueFd client = node.connect();
  REQUIRE(client.get() >= 0);
  const UniqueFd server = node.accept();
  REQUIRE(Node::passes(client, server));
  REQUIRE(Node::passes(server, client));
  auto read = destinations(*socket, web.key);
  REQUIRE(read.size() == 1);
  CHECK(read[0].active_connections == 1);
  CHECK(read[0].inactive_connections == 0);

  commands.clear();
  web.scheduler = "mh";
  web.flags = kHashPort | kPersistent;
  web.timeout = seconds(60);
  commands.change(web);
  commands.change(web.key, Destination{endpoint, 0});
  obeyed(*socket, commands);
  CHECK(Node::passes(client, server));
  CHECK(Node::passes(server, client));
  read = destinations(*socket, web.key);
  REQUIRE(read.size() == 1);
  CHECK(read[0].weight == 0);
  CHECK(read[0].active_connections == 1);
  CHECK(node.connect().get() < 0);  // weight 0: nobody new

  commands.clear();
  commands.change(web.key, Destination{endpoint, 1});
  obeyed(*socket, commands);
  CHECK(node.connect().get() >= 0);
}

}  // namespace
}  // namespace shunt::netlink::ipvs
