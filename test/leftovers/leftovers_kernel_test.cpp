// kube-proxy's leftovers in the real kernel: found, removed, and nothing else with them. A
// connection that was opened through them goes on afterwards.

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "backend/leftovers/leftovers.h"
#include "leftovers/stand_ins.h"
#include "netns/client.h"
#include "netns/echo_server.h"
#include "netns/lab.h"
#include "netns/process.h"
#include "netns/sockets.h"

namespace shunt::backend::leftovers {
namespace {

using net::Family;

constexpr Family kFamilies[] = {Family::IPv4, Family::IPv6};

net::SocketAddress address(const std::string& text) {
  return net::parse_socket_address(text).value();
}

std::string client_of(Family family) {
  return family == Family::IPv4 ? "10.64.0.100:0" : "[fd64::100]:0";
}
std::string service_of(Family family) {
  return family == Family::IPv4 ? "10.112.0.10:80" : "[fdc0::10]:80";
}
std::string endpoint_of(Family family) {
  return family == Family::IPv4 ? "10.64.0.1:8080" : "[fd64::1]:8080";
}

lab::LabSpec node_with_pods() {
  if (::geteuid() != 0) {
    SKIP("needs root");
  }
  lab::LabSpec spec = lab::default_lab_spec();
  spec.pods = {
      {"web", {net::parse_ip("10.64.0.1").value(), net::parse_ip("fd64::1").value()}},
      {"client", {net::parse_ip("10.64.0.100").value(), net::parse_ip("fd64::100").value()}}};
  return spec;
}

// A TCP connection that stays open, and whether the other end still answers.
class Conversation {
 public:
  Conversation(const lab::Netns& where, Family family)
      : fd_(where.run([&] {
          UniqueFd fd = lab::open_socket(net::Protocol::Tcp, family);
          lab::bind_to(fd.get(), address(client_of(family)));
          const lab::RawAddress to = lab::to_raw(address(service_of(family)));
          (void)::connect(fd.get(), to.get(), to.length);  // goes on in the background
          return fd;
        })) {
    greeted_ = receive().starts_with("web ");
  }
  bool greeted() const { return greeted_; }
  bool answers(const std::string& word) {
    return ::send(fd_.get(), word.data(), word.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(word.size()) &&
           receive() == word;
  }

 private:
  std::string receive() {
    pollfd ready{fd_.get(), POLLIN, 0};
    std::array<char, 512> buffer{};
    if (::poll(&ready, 1, 3000) != 1) {
      return {};
    }
    const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : std::string();
  }

  UniqueFd fd_;
  bool greeted_ = false;
};

class Node {
 public:
  Node()
      : lab_(node_with_pods()),
        web_(lab_.place("web"), net::Protocol::Tcp, address(endpoint_of(Family::IPv4)), "web"),
        web6_(lab_.place("web"), net::Protocol::Tcp, address(endpoint_of(Family::IPv6)), "web") {}

  std::string run(const std::vector<std::string>& argv, const std::string& input = {}) const {
    return lab_.node().run([&] { return lab::run_program(argv, input); });
  }
  bool runs(const std::vector<std::string>& argv, const std::string& input = {}) const {
    try {
      (void)run(argv, input);
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }
  Found find() const {
    return lab_.node().run([] { return find_kube_proxy(); });
  }
  Report remove() const {
    return lab_.node().run([] {
      RemovalOptions options;
      options.remove_ipvs = [] {  // Withdrawal's part, which withdrawal_kernel_test.cpp looks at
        (void)lab::run_program({"ip", "link", "delete", "kube-ipvs0"}, {});
        return Result<>();
      };
      return remove_kube_proxy(options);
    });
  }
  Report remove_all_but_ipvs() const {
    return lab_.node().run([] { return remove_kube_proxy(); });
  }
  Conversation converse(Family family) const { return {lab_.place("client"), family}; }
  bool reaches_service(Family family) const {
    lab::Question question;
    question.from = address(client_of(family));
    question.to = address(service_of(family));
    question.timeout = std::chrono::milliseconds(300);
    return lab::ask(lab_.place("client"), question).kind == lab::Answer::Kind::Answered;
  }
  // As much of our own table as it takes: the kernel tracks and translates connections, also those
  // that are established, only as long as a rule asks for the one and a nat chain for the other.
  void program_ours() const {
    for (const std::string ip : {"ip", "ip6"}) {
      (void)run(
          {"nft", "-f", "-"},
          "table " + ip +
              " kube-shunt { chain p { type nat hook prerouting priority -100; ct state new; }; }");
    }
  }
  const lab::Lab& lab() const { return lab_; }

 private:
  lab::Lab lab_;
  lab::EchoServer web_;
  lab::EchoServer web6_;
};

// Lines of a listing that are not about kube-proxy: what must be the same before and after.
std::vector<std::string> foreign_lines(const std::string& listing) {
  std::vector<std::string> out;
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    const bool kubelets = line.find("KUBE-FIREWALL") != std::string::npos ||
                          line.find("KUBE-KUBELET-CANARY") != std::string::npos;
    if (line.starts_with("#") || (line.find("KUBE-") != std::string::npos && !kubelets)) {
      continue;
    }
    // The counters of a built-in chain go on counting.
    out.push_back(line.starts_with(":") ? line.substr(0, line.find('[')) : line);
  }
  return out;
}

bool mentions(const std::vector<std::string>& lines, const std::string& text) {
  return std::ranges::any_of(
      lines, [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

TEST_CASE("on a node that kube-proxy never saw, looking and removing do nothing") {
  const Node node;
  const Found found = node.find();
  CHECK_FALSE(found.any());
  CHECK(found.unknown.empty());
  const Report report = node.remove();
  CHECK(report.ok());
  CHECK(report.removed.empty());
  CHECK(report.left.empty());
  CHECK(node.run({"nft", "list", "ruleset"}).empty());
  for (const char* path :
       {"/proc/thread-self/net/ip_tables_names", "/proc/thread-self/net/ip6_tables_names"}) {
    const std::string names = node.lab().node().run([&] {
      std::ifstream file(path);
      return std::string(std::istreambuf_iterator<char>(file), {});
    });
    CHECK(names.empty());
  }
}

TEST_CASE("nftables mode: the tables go, a conversation through them goes on") {
  const Node node;
  node.program_ours();
  (void)node.run({"nft", "-f", "-"}, "table ip kube-proxy-of-mine { chain x { accept; }; }");
  (void)node.run({"nft", "-f", "-"}, test::nftables_mode());
  std::vector<Conversation> conversations;
  for (const Family family : kFamilies) {
    conversations.push_back(node.converse(family));
    REQUIRE(conversations.back().greeted());
  }
  const Found found = node.find();
  CHECK(found.nftables);
  CHECK_FALSE((found.iptables || found.ipvs));

  const Report report = node.remove();
  CHECK(report.ok());
  CHECK(
      report.removed ==
      std::vector<std::string>{"nftables: table ip kube-proxy", "nftables: table ip6 kube-proxy"});
  CHECK_FALSE(node.find().any());
  const std::string tables = node.run({"nft", "list", "tables"});
  CHECK(tables == "table ip kube-shunt\ntable ip6 kube-shunt\ntable ip kube-proxy-of-mine\n");
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(conversations[i].answers("still there?\n"));
    CHECK_FALSE(node.reaches_service(kFamilies[i]));  // so it was the leftovers that led there
  }
}

void iptables_mode_goes(const std::string& kind) {
  const Node node;
  const auto program = [&](Family family, const std::string& verb) {
    return (family == Family::IPv4 ? "iptables-" : "ip6tables-") + kind + "-" + verb;
  };
  const auto listing = [&](Family family) { return node.run({program(family, "save")}); };
  for (const Family family : kFamilies) {
    if (!node.runs(
            {program(family, "restore"), "-w", "5", "--noflush"}, test::iptables_mode(family))) {
      SKIP(program(family, "restore") + " does not work here");
    }
  }
  std::vector<Conversation> conversations;
  std::vector<std::vector<std::string>> before;
  for (const Family family : kFamilies) {
    conversations.push_back(node.converse(family));
    REQUIRE(conversations.back().greeted());
    before.push_back(foreign_lines(listing(family)));
    REQUIRE(before.back().size() > 20);
  }
  const Found found = node.find();
  CHECK(found.iptables);
  CHECK_FALSE((found.nftables || found.ipvs));
  CHECK(found.unknown.empty());

  const Report report = node.remove();
  CHECK(report.ok());
  CHECK(report.left.empty());
  CHECK(report.removed.size() == 6);
  CHECK(mentions(report.removed, "iptables-" + kind + ": nat: 7 chains, 3 jumps"));
  CHECK(mentions(report.removed, "ip6tables-" + kind + ": filter: 6 chains, 6 jumps"));
  CHECK_FALSE(node.find().any());
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(foreign_lines(listing(kFamilies[i])) == before[i]);
    CHECK(conversations[i].answers("still there?\n"));
    CHECK_FALSE(node.reaches_service(kFamilies[i]));
  }
  const Report again = node.remove();
  CHECK(again.ok());
  CHECK(again.removed.empty());
}

TEST_CASE("iptables mode, nft variant: chains and jumps go, others' stay, a conversation goes on") {
  iptables_mode_goes("nft");
}

TEST_CASE(
    "iptables mode, legacy variant: chains and jumps go, others' stay, a conversation goes on") {
  iptables_mode_goes("legacy");
}

TEST_CASE("a chain that another owner jumps to is named and stays; all else goes") {
  const Node node;
  (void)node.run({"iptables-nft-restore", "--noflush"}, test::iptables_mode(Family::IPv4));
  (void)node.run({"iptables-nft", "-t", "nat", "-A", "OTHERS", "-j", "KUBE-MARK-MASQ"});
  const Report report = node.remove();
  CHECK(report.ok());
  REQUIRE(report.left.size() == 1);
  CHECK(
      report.left[0] ==
      "iptables-nft: nat: chain KUBE-MARK-MASQ, because of a rule that is not kube-proxy's: "
      "-A OTHERS -j KUBE-MARK-MASQ");
  const std::string after = node.run({"iptables-nft-save", "-t", "nat"});
  CHECK(after.find("-A KUBE-MARK-MASQ -j MARK") != std::string::npos);
  CHECK(after.find("KUBE-SERVICES") == std::string::npos);
}

TEST_CASE("IPVS mode: the link, the rules and the sets that they use go, other sets stay") {
  const Node node;
  for (const Family family : kFamilies) {
    if (!node.runs({"ipset", "restore"}, test::ipvs_sets(family))) {
      SKIP("ipset does not work here");
    }
    (void)node.run(
        {family == Family::IPv4 ? "iptables-nft-restore" : "ip6tables-nft-restore", "--noflush"},
        test::ipvs_rules(family));
  }
  // This may be a kernel without dummy links; the name is what counts.
  (void)node.run({"ip", "link", "add", "kube-ipvs0", "type", "bridge"});
  const Found found = node.find();
  CHECK(found.ipvs);
  CHECK(found.iptables);

  const Report report = node.remove();
  CHECK(report.ok());
  CHECK(report.left.empty());
  CHECK(mentions(report.removed, "ipvs: link kube-ipvs0"));
  CHECK(mentions(report.removed, "ipvs: set KUBE-6-LOOP-BACK"));
  CHECK(node.run({"ipset", "list", "-n"}) == "other-inet\nother-inet6\n");
  CHECK_FALSE(node.runs({"ip", "link", "show", "kube-ipvs0"}));
  CHECK_FALSE(node.find().any());
}

TEST_CASE("IPVS mode: the link stays where nobody says how it goes, and when it is kube-shunt's") {
  const Node node;
  (void)node.run({"ip", "link", "add", "kube-ipvs0", "type", "bridge"});
  CHECK(node.find().ipvs);
  const Report careful = node.remove_all_but_ipvs();
  CHECK(careful.ok());
  CHECK(careful.removed.empty());
  CHECK(node.runs({"ip", "link", "show", "kube-ipvs0"}));

  (void)node.run({"ip", "-6", "rule", "add", "priority", "99", "fwmark", "1", "lookup", "12112"});
  CHECK_FALSE(node.find().any());
  const Report ours = node.remove();
  CHECK(ours.ok());
  CHECK(ours.removed.empty());
  CHECK(mentions(ours.left, "ipvs: link kube-ipvs0 and its virtual servers: kube-shunt's own"));
  CHECK(node.runs({"ip", "link", "show", "kube-ipvs0"}));
}

TEST_CASE("a set that another owner's rule uses is named and stays") {
  const Node node;
  if (!node.runs({"ipset", "restore"}, "create KUBE-CLUSTER-IP hash:ip,port family inet\n")) {
    SKIP("ipset does not work here");
  }
  (void)node.run(
      {"iptables-nft",
       "-A",
       "FORWARD",
       "-m",
       "set",
       "--match-set",
       "KUBE-CLUSTER-IP",
       "dst,dst",
       "-j",
       "ACCEPT"});
  const Report report = node.remove();
  CHECK(report.ok());
  CHECK(report.left == std::vector<std::string>{"ipvs: set KUBE-CLUSTER-IP: a rule still uses it"});
  CHECK(node.run({"ipset", "list", "-n"}) == "KUBE-CLUSTER-IP\n");
}

}  // namespace
}  // namespace shunt::backend::leftovers
