// The end of the IPVS mode in the real kernel: connections that it balances go on while new ones go
// by nftables, and when they have ended nothing is left. Where the kernel has no IPVS this says
// SKIP: scripts/vm.sh runs it under one that has.

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backend/ipvs/withdrawal.h"
#include "backend/leftovers/leftovers.h"
#include "netlink/delivery_rule.h"
#include "netlink/link_kind.h"
#include "netns/echo_server.h"
#include "netns/lab.h"
#include "netns/process.h"
#include "netns/sockets.h"

namespace shunt::backend::ipvs {
namespace {

using namespace std::chrono_literals;
using net::Family;
using net::Protocol;
using netlink::VirtualAddresses;
using Change = VirtualAddresses::Change;

constexpr std::uint32_t kMark = 0x4000;
constexpr std::chrono::seconds kPatience{10};  // virtual machines are slow
// A connection that was reset is forgotten after ten seconds.
constexpr std::chrono::seconds kConnectionsEnd{90};

struct Plan {
  Family family;
  const char* service;
  const char* others;    // a virtual server in the excluded range
  const char* stranger;  // and one at an address that is not this host's
  const char* old_pod;   // to which IPVS leads
  const char* new_pod;   // to which nftables leads
  const char* client;
  const char* table;
};
constexpr Plan kPlans[] = {
    {Family::IPv4,
     "10.112.0.10",
     "10.112.9.1",
     "203.0.113.200",
     "10.64.0.1",
     "10.64.0.2",
     "10.64.0.100",
     "ip"},
    {Family::IPv6, "fdc0::10", "fdc0:9::1", "fd99::1", "fd64::1", "fd64::2", "fd64::100", "ip6"}};
const std::vector<net::Cidr> kExcluded{
    net::parse_cidr("10.112.9.0/24").value(), net::parse_cidr("fdc0:9::/64").value()};

net::IpAddress ip(const char* text) { return net::parse_ip(text).value(); }
net::SocketAddress at(const char* text, std::uint16_t port) { return {ip(text), net::Port{port}}; }

// A conversation, or a flow of UDP.
class Conversation {
 public:
  Conversation(const lab::Netns& where, Protocol protocol, const Plan& plan, std::uint16_t port)
      : fd_(where.run([&] {
          UniqueFd fd = lab::open_socket(protocol, plan.family);
          lab::bind_to(fd.get(), at(plan.client, 0));
          const lab::RawAddress to = lab::to_raw(at(plan.service, port));
          (void)::connect(fd.get(), to.get(), to.length);  // goes on in the background
          return fd;
        })) {
    if (protocol == Protocol::Tcp) {
      partner_ = receive();
    }
  }
  // The name of the pod that answered first.
  std::string partner() const { return partner_.substr(0, partner_.find(' ')); }
  bool answers(const std::string& word) { return reply(word) == word; }
  // Of UDP: begins with the name of the pod.
  std::string reply(const std::string& word) {
    const ssize_t sent = ::send(fd_.get(), word.data(), word.size(), MSG_NOSIGNAL);
    return sent == static_cast<ssize_t>(word.size()) ? receive() : std::string();
  }
  // Not by FIN, after which the kernel remembers it for two minutes.
  void reset() {
    const linger at_once{1, 0};
    REQUIRE(::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    fd_.reset();
  }

 private:
  std::string receive() {
    pollfd ready{fd_.get(), POLLIN, 0};
    std::array<char, 512> buffer{};
    if (::poll(&ready, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())) != 1) {
      return {};
    }
    const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : std::string();
  }

  UniqueFd fd_;
  std::string partner_;
};

lab::LabSpec node_with_pods() {
  if (::geteuid() != 0) {
    SKIP("needs root");
  }
  lab::LabSpec spec = lab::default_lab_spec();
  const auto pod = [&](const char* name, const char* Plan::*address) {
    spec.pods.push_back({name, {ip(kPlans[0].*address), ip(kPlans[1].*address)}});
  };
  pod("old", &Plan::old_pod);
  pod("new", &Plan::new_pod);
  pod("client", &Plan::client);
  return spec;
}

class Node {
 public:
  Node() : lab_(node_with_pods()) {
    lab_.node().run([] {
      const auto socket = netlink::ipvs::Socket::open();
      if (!socket) {
        SKIP("no IPVS here: " + socket.error().what);
      }
      if (netlink::makes_links("dummy") != true) {
        SKIP("no dummy devices here");
      }
      lab::write_sysctl("net/ipv4/vs/conntrack", "1");
      REQUIRE((*socket)->set_timeouts({60s, 60s, 20s}));
    });
    for (const Plan& plan : kPlans) {
      // Connections are tracked from the beginning, as on every node: by kube-proxy's rules or
      // ours.
      (void)run(
          {"nft", "-f", "-"},
          std::string("table ") + plan.table +
              " base { chain source { type nat hook postrouting priority 100; mark 1 masquerade; "
              "}; }\n");
      for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp}) {
        servers_.push_back(std::make_unique<lab::EchoServer>(
            lab_.place("old"), protocol, at(plan.old_pod, 8080), "old"));
        servers_.push_back(std::make_unique<lab::EchoServer>(
            lab_.place("new"), protocol, at(plan.new_pod, 8080), "new"));
      }
    }
  }

  // What an IPVS mode has: `ours` with addresses that are not local.
  void balance_by_ipvs(bool ours) const {
    lab_.node().run([&] {
      const auto socket = netlink::ipvs::Socket::open();
      REQUIRE(socket);
      netlink::ipvs::Commands commands;
      for (const Plan& plan : kPlans) {
        auto addresses = VirtualAddresses::open(plan.family, kMark);
        REQUIRE(addresses);
        REQUIRE((*addresses)->set_up());
        std::vector<Change> changes{{Change::What::Bind, ip(plan.service)}};
        if (ours) {
          changes.push_back({Change::What::Route, ip(plan.service)});
          changes.push_back({Change::What::MakeNotLocal, ip(plan.service)});
        }
        std::vector<VirtualAddresses::Refused> refused;
        REQUIRE((*addresses)->apply(changes, refused));
        REQUIRE(refused.empty());
        for (const char* address : {plan.service, plan.others, plan.stranger}) {
          for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp}) {
            netlink::ipvs::Server server;
            server.key = {at(address, 80), protocol};
            server.scheduler = "rr";
            commands.add(server);
            netlink::ipvs::Destination destination;
            destination.address = at(plan.old_pod, 8080);
            commands.add(server.key, destination);
          }
        }
      }
      std::vector<netlink::ipvs::Refused> refused;
      REQUIRE((*socket)->send(commands, refused));
      REQUIRE(refused.empty());
    });
    if (!ours) {  // kube-proxy knows no such rules
      for (const char* family : {"-4", "-6"}) {
        (void)run({"ip", family, "rule", "del", "priority", "99"});
      }
      return;
    }
    program([](const Plan& plan) {
      return "chain marks { type filter hook prerouting priority -95; " + to_service(plan) +
             "meta mark set meta mark | 0x4000; }";
    });
  }

  // Its program has no word of IPVS.
  void balance_by_nftables() const {
    program([](const Plan& plan) {
      const std::string to = net::to_string(at(plan.new_pod, 8080));
      std::string out;
      for (const std::string hook : {"prerouting", "output"}) {
        out += "chain " + hook + " { type nat hook " + hook + " priority -100; " +
               to_service(plan) + "meta l4proto { tcp, udp } dnat to " + to + "; }\n";
      }
      return out;
    });
  }

  Withdrawal::Progress step() const {
    return lab_.node().run([&] {
      auto withdrawal = open();
      auto progress = withdrawal->step();
      REQUIRE(progress);
      return *progress;
    });
  }
  void begin() const {
    lab_.node().run([&] { REQUIRE(open()->begin()); });
  }
  Result<> remove_now() const {
    return lab_.node().run([&] { return open()->remove_now(); });
  }
  // False: it still waits.
  bool ends() const {
    const auto deadline = std::chrono::steady_clock::now() + kConnectionsEnd;
    while (std::chrono::steady_clock::now() < deadline) {
      if (step().done) {
        return true;
      }
      std::this_thread::sleep_for(1s);
    }
    return false;
  }

  // Which pod a new connection reaches.
  std::string asked(const Plan& plan) const {
    Conversation one = converse(plan);
    std::string name = one.partner();
    one.reset();
    return name;
  }
  Conversation converse(const Plan& plan, Protocol protocol = Protocol::Tcp) const {
    return {lab_.place("client"), protocol, plan, 80};
  }
  std::string run(const std::vector<std::string>& argv, const std::string& input = {}) const {
    return lab_.node().run([&] { return lab::run_program(argv, input); });
  }
  std::size_t servers(Family family) const {
    return lab_.node().run(
        [&] { return netlink::ipvs::Socket::open().value()->servers(family)->size(); });
  }
  std::vector<netlink::ipvs::Destination> destinations(const Plan& plan) const {
    return lab_.node().run([&] {
      const auto listed = netlink::ipvs::Socket::open().value()->destinations(
          {at(plan.service, 80), Protocol::Tcp});
      return listed ? *listed : std::vector<netlink::ipvs::Destination>();
    });
  }
  void set_up(const Plan& plan) const {
    lab_.node().run([&] { REQUIRE(VirtualAddresses::open(plan.family, kMark).value()->set_up()); });
  }
  bool makes_links(const char* kind) const {
    return lab_.node().run([&] { return netlink::makes_links(kind); }).value();
  }
  leftovers::Found found() const {
    return lab_.node().run([] { return leftovers::find_kube_proxy(); });
  }
  // Rules, routes and device; those of others' servers aside.
  void check_that_nothing_is_left() const {
    for (const char* family : {"-4", "-6"}) {
      CHECK(run({"ip", family, "rule"}).find("12112") == std::string::npos);
      CHECK(
          run({"ip", family, "route", "show", "table", "all"}).find("12112") == std::string::npos);
    }
    CHECK(run({"ip", "-o", "link"}).find("kube-ipvs0") == std::string::npos);
    for (const Plan& plan : kPlans) {
      CHECK(servers(plan.family) == 4);  // the excluded ones and the strangers
    }
  }

 private:
  std::unique_ptr<Withdrawal> open() const {
    auto opened = Withdrawal::open({{Family::IPv4, Family::IPv6}, kExcluded});
    REQUIRE(opened);
    return std::move(*opened);
  }
  static std::string to_service(const Plan& plan) {
    return std::string(plan.table) + " daddr " + plan.service + " ";
  }
  // In place of the one that was there.
  template <typename Chains>
  void program(const Chains& chains) const {
    for (const Plan& plan : kPlans) {
      const std::string table = std::string("table ") + plan.table + " test";
      (void)run(
          {"nft", "-f", "-"},
          table + " {}\ndelete " + table + "\n" + table + " {\n" + chains(plan) + "\n}\n");
    }
  }

  lab::Lab lab_;
  std::vector<std::unique_ptr<lab::EchoServer>> servers_;
};

void conversations_end_by_themselves(bool ours) {
  const Node node;
  node.balance_by_ipvs(ours);
  CHECK(node.found().ipvs == !ours);
  std::vector<Conversation> old;
  for (const Plan& plan : kPlans) {
    old.push_back(node.converse(plan));
    REQUIRE(old.back().partner() == "old");
  }

  node.begin();
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(old[i].answers("begun\n"));
    CHECK(node.asked(kPlans[i]) == "old");  // IPVS is in force still
  }
  node.balance_by_nftables();
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(old[i].answers("switched\n"));
    CHECK(node.asked(kPlans[i]) == "new");
  }
  node.begin();  // as after a restart
  for (int steps = 0; steps < 2; ++steps) {
    const Withdrawal::Progress waiting = node.step();
    CHECK_FALSE(waiting.done);
    CHECK(waiting.failed.empty());
    CHECK(waiting.left.servers == 2);  // those of UDP are gone
    CHECK(waiting.left.connections >= 2);
    CHECK(waiting.left.addresses == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(old[i].answers("waiting\n"));
      REQUIRE(node.destinations(kPlans[i]).size() == 1);
      CHECK(node.destinations(kPlans[i])[0].weight == 0);
    }
  }
  for (Conversation& one : old) {
    one.reset();
  }
  CHECK(node.ends());
  node.check_that_nothing_is_left();
  for (const Plan& plan : kPlans) {
    CHECK(node.asked(plan) == "new");
  }
  CHECK(node.step().done);  // once more: nothing to do
  node.begin();
  node.check_that_nothing_is_left();
}

TEST_CASE("from our IPVS mode to nftables: conversations go on, and then nothing of it is left") {
  conversations_end_by_themselves(true);
}

TEST_CASE("from kube-proxy's IPVS mode to nftables: likewise") {
  conversations_end_by_themselves(false);
}

TEST_CASE("a flow of UDP is waited for until it expires") {
  const Node node;
  node.balance_by_ipvs(true);
  Conversation flow = node.converse(kPlans[0], Protocol::Udp);
  REQUIRE(flow.reply("hello\n").starts_with("old "));
  node.begin();
  node.balance_by_nftables();
  REQUIRE(flow.reply("switched\n").starts_with("old "));
  const Withdrawal::Progress waiting = node.step();
  CHECK_FALSE(waiting.done);
  CHECK(waiting.left.servers == 1);
  CHECK(waiting.left.connections == 1);
  CHECK(waiting.summary() == "1 virtual server, 1 connection, 1 address");
  CHECK(node.ends());
  node.check_that_nothing_is_left();
}

TEST_CASE("at once: all of Services goes, others' virtual servers stay") {
  for (const bool ours : {true, false}) {
    const Node node;
    node.balance_by_ipvs(ours);
    Conversation broken = node.converse(kPlans[0]);
    REQUIRE(broken.partner() == "old");
    CHECK(node.remove_now());
    node.check_that_nothing_is_left();
    CHECK(node.remove_now());
  }
}

TEST_CASE("an excluded address on the device stays, and the device with it") {
  const Node node;
  node.balance_by_ipvs(false);
  (void)node.run({"ip", "addr", "add", "10.112.9.1/32", "dev", "kube-ipvs0"});
  const Withdrawal::Progress progress = node.step();
  CHECK(progress.done);
  CHECK(progress.summary() == "1 excluded address");
  CHECK(
      node.run({"ip", "-o", "addr", "show", "dev", "kube-ipvs0"}).find("10.112.9.1") !=
      std::string::npos);
  CHECK(node.servers(Family::IPv4) == 4);
}

TEST_CASE("a later IPVS mode takes the rule for unmarked packets away") {
  const Node node;
  node.balance_by_ipvs(true);
  node.begin();
  for (const Plan& plan : kPlans) {
    const std::string which = plan.family == Family::IPv4 ? "-4" : "-6";
    const auto rules = [&] { return node.run({"ip", which, "rule"}); };
    CHECK(rules().find("not from all iif lo lookup 12112") != std::string::npos);
    CHECK(rules().find("fwmark 0x4000/0x4000 lookup 12112") != std::string::npos);
    node.set_up(plan);
    CHECK(rules().find("iif lo") == std::string::npos);
    CHECK(rules().find("fwmark 0x4000/0x4000 lookup 12112") != std::string::npos);
  }
}

TEST_CASE("asking whether there are devices of a kind makes none") {
  const Node node;
  const std::string before = node.run({"ip", "-o", "link"});
  CHECK(node.makes_links("dummy"));
  CHECK(node.makes_links("veth"));
  CHECK_FALSE(node.makes_links("no-such-kind"));
  CHECK(node.run({"ip", "-o", "link"}) == before);
}

}  // namespace
}  // namespace shunt::backend::ipvs
