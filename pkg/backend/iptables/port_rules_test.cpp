#include "backend/iptables/port_rules.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "backend/iptables/frame.h"
#include "backend/iptables/names.h"
#include "backend/iptables/rule.h"

namespace shunt::backend::iptables {
namespace {

using desired::Fate;
using desired::FrontendKey;
using desired::FrontendPlan;
using desired::Reach;

net::IpAddress ip(const char* text) { return *net::parse_ip(text); }
FrontendKey tcp(const char* address, std::uint16_t port) {
  return {ip(address), net::Protocol::Tcp, net::Port{port}};
}
FrontendKey node_port(std::uint16_t port) {
  return desired::node_port_key(net::Family::IPv4, net::Protocol::Tcp, net::Port{port});
}

desired::EndpointListPtr endpoints(const std::vector<const char*>& texts) {
  desired::EndpointList out;
  for (const char* text : texts) {
    out.push_back(*net::parse_socket_address(text));
  }
  return std::make_shared<const desired::EndpointList>(std::move(out));
}

FrontendPlan plan(Reach reach, Fate fate, desired::EndpointListPtr list = nullptr) {
  FrontendPlan out;
  out.service = "ns1/svc1:p80";
  out.reach = reach;
  out.fate = fate;
  out.endpoints = std::move(list);
  return out;
}

Style with_pods() {
  Style out;
  out.detector.kind = LocalDetector::Kind::SourceRange;
  out.pods = *net::parse_cidr("10.0.0.0/8");
  return out;
}

PortRules rules(
    const std::vector<std::pair<FrontendKey, FrontendPlan>>& frontends, const Style& style) {
  std::vector<std::pair<FrontendKey, const FrontendPlan*>> out;
  out.reserve(frontends.size());
  for (const auto& [key, one] : frontends) {
    out.emplace_back(key, &one);
  }
  return rules_of_port(out, style);
}

Rules shared(const PortRules& port, Table table, const std::string& chain) {
  Rules out;
  for (const SharedRule& rule : port.shared) {
    if (rule.table == table && rule.chain == chain) {
      out.push_back(rule.rule);
    }
  }
  return out;
}

const std::string kSvc = "KUBE-SVC-XPGD46QRK7WJZT7O";
const std::string kSvl = "KUBE-SVL-XPGD46QRK7WJZT7O";
const std::string kExt = "KUBE-EXT-XPGD46QRK7WJZT7O";
const std::string kFw = "KUBE-FW-XPGD46QRK7WJZT7O";
const std::string kSep = "KUBE-SEP-SXIVWICOYRO3J4NJ";

TEST_CASE("chains have kube-proxy's names") {
  CHECK(chain_of_port(PortChain::Cluster, "ns1/svc1:p80", net::Protocol::Tcp) == kSvc);
  CHECK(
      chain_of_endpoint(
          "ns1/svc1:p80", net::Protocol::Tcp, *net::parse_socket_address("10.180.0.1:80")) == kSep);
  CHECK(
      chain_of_port(PortChain::Local, "ns1/svc1", net::Protocol::Tcp) ==
      "KUBE-SVL-AQI2S6QIMU7PVVRP");
}

TEST_CASE("a ClusterIP is balanced, masqueraded for strangers, and sends hairpins back") {
  const PortRules got = rules(
      {{tcp("10.96.0.1", 80),
        plan(Reach::Internal, Fate::Balance, endpoints({"10.180.0.1:80", "10.180.0.2:80"}))}},
      with_pods());
  CHECK(
      shared(got, Table::Nat, "KUBE-SERVICES") ==
      Rules{
          "-d 10.96.0.1/32 -p tcp -m comment --comment \"ns1/svc1:p80 cluster IP\" -m tcp --dport "
          "80 "
          "-j " +
          kSvc});
  REQUIRE(got.chains.size() == 3);
  const Rules& svc = got.chains.at(kSvc);
  REQUIRE(svc.size() == 3);
  CHECK(
      svc[0] ==
      "! -s 10.0.0.0/8 -d 10.96.0.1/32 -p tcp -m comment --comment \"ns1/svc1:p80 cluster IP\" -m "
      "tcp --dport 80 -j KUBE-MARK-MASQ");
  CHECK(
      svc[1] ==
      "-m comment --comment \"ns1/svc1:p80 -> 10.180.0.1:80\" -m statistic --mode random "
      "--probability 0.50000000000 -j " +
          kSep);
  CHECK(svc[2].starts_with("-m comment --comment \"ns1/svc1:p80 -> 10.180.0.2:80\" -j KUBE-SEP-"));
  CHECK(
      got.chains.at(kSep) ==
      Rules{
          "-s 10.180.0.1/32 -m comment --comment \"ns1/svc1:p80\" -j KUBE-MARK-MASQ",
          "-p tcp -m comment --comment \"ns1/svc1:p80\" -m tcp -j DNAT --to-destination "
          "10.180.0.1:80"});
}

TEST_CASE("affinity looks before it draws, and remembers") {
  FrontendPlan sticky = plan(Reach::Internal, Fate::Balance, endpoints({"10.180.0.1:80"}));
  sticky.affinity.emplace();
  sticky.affinity->timeout = std::chrono::seconds(300);
  const PortRules got = rules({{tcp("10.96.0.1", 80), sticky}}, {});
  const Rules& svc = got.chains.at(kSvc);
  REQUIRE(svc.size() == 2);
  CHECK(
      svc[0] ==
      "-m comment --comment \"ns1/svc1:p80 -> 10.180.0.1:80\" -m recent --rcheck --seconds 300 "
      "--reap --name " +
          kSep + " --mask 255.255.255.255 --rsource -j " + kSep);
  CHECK(
      got.chains.at(kSep)[1] ==
      "-p tcp -m comment --comment \"ns1/svc1:p80\" -m recent --set --name " + kSep +
          " --mask 255.255.255.255 --rsource -m tcp -j DNAT --to-destination 10.180.0.1:80");
}

TEST_CASE("nobody to serve: refused, or dropped where policy Local leaves nobody here") {
  CHECK(
      shared(
          rules({{tcp("10.96.0.1", 80), plan(Reach::Internal, Fate::Refuse)}}, {}),
          Table::Filter,
          "KUBE-SERVICES") ==
      Rules{"-d 10.96.0.1/32 -p tcp -m comment --comment \"ns1/svc1:p80 has no endpoints\" -m tcp "
            "--dport 80 -j REJECT --reject-with icmp-port-unreachable"});
  const PortRules dropped = rules(
      {{node_port(30080), plan(Reach::ExternalLocal, Fate::Drop, endpoints({"10.1.0.1:8"}))}},
      with_pods());
  CHECK(
      shared(dropped, Table::Filter, "KUBE-EXTERNAL-SERVICES") ==
      Rules{"-p tcp -m comment --comment \"ns1/svc1:p80 has no local endpoints\" -m addrtype "
            "--dst-type LOCAL -m tcp --dport 30080 -j DROP"});
  // Pods and the node itself are served all the same.
  CHECK(
      dropped.chains.at(kExt) ==
      Rules{
          "-s 10.0.0.0/8 -m comment --comment \"pod traffic for ns1/svc1:p80 external "
          "destinations\" -j " +
              kSvc,
          "-m comment --comment \"masquerade LOCAL traffic for ns1/svc1:p80 external "
          "destinations\" "
          "-m addrtype --src-type LOCAL -j KUBE-MARK-MASQ",
          "-m comment --comment \"route LOCAL traffic for ns1/svc1:p80 external destinations\" -m "
          "addrtype --src-type LOCAL -j " +
              kSvc});
}

TEST_CASE("a balancer's address with source ranges goes by way of the firewall chain") {
  FrontendPlan restricted = plan(Reach::External, Fate::Balance, endpoints({"10.180.0.1:80"}));
  restricted.balancer = true;
  restricted.sources = std::make_shared<const std::vector<net::Cidr>>(
      std::vector<net::Cidr>{*net::parse_cidr("203.0.113.0/25")});
  const PortRules got = rules({{tcp("198.51.100.1", 80), restricted}}, {});
  CHECK(shared(got, Table::Nat, "KUBE-SERVICES")
            .front()
            .ends_with("loadbalancer IP\" -m tcp --dport 80 -j " + kFw));
  CHECK(
      shared(got, Table::Filter, "KUBE-PROXY-FIREWALL") ==
      Rules{
          "-d 198.51.100.1/32 -p tcp -m comment --comment \"ns1/svc1:p80 traffic not accepted by " +
          kFw + "\" -m tcp --dport 80 -j DROP"});
  CHECK(
      got.chains.at(kFw) ==
      Rules{
          "-s 203.0.113.0/25 -m comment --comment \"ns1/svc1:p80 loadbalancer IP\" -j " + kExt,
          "-m comment --comment \"other traffic to ns1/svc1:p80 will be dropped by "
          "KUBE-PROXY-FIREWALL\""});
}

TEST_CASE("policy Local of outsiders has a chain of its own") {
  FrontendPlan local =
      plan(Reach::ExternalLocal, Fate::Balance, endpoints({"10.180.0.1:80", "10.180.0.2:80"}));
  local.local_endpoints = endpoints({"10.180.0.1:80"});
  const PortRules got = rules({{node_port(30080), local}}, with_pods());
  CHECK(got.chains.at(kExt).back() == "-j " + kSvl);
  CHECK(got.chains.at(kSvl).size() == 1);
  CHECK(got.chains.at(kSvc).size() == 2);
  CHECK(got.chains.size() == 5);
}

TEST_CASE("shares are those of the kernel's draw, and the last endpoint takes the rest") {
  CHECK(one_of(3) == "-m statistic --mode random --probability 0.33333333349");
  CHECK(one_of(7) == "-m statistic --mode random --probability 0.14285714272");
  std::vector<std::string> texts;
  desired::EndpointList list;
  for (unsigned i = 0; i < 5'000; ++i) {
    net::IpAddress address = ip("10.0.0.0");
    address.bytes[2] = static_cast<std::uint8_t>(i >> 8);
    address.bytes[3] = static_cast<std::uint8_t>(i);
    list.push_back({address, net::Port{80}});
  }
  const PortRules got = rules(
      {{tcp("10.96.0.1", 80),
        plan(
            Reach::Internal,
            Fate::Balance,
            std::make_shared<const desired::EndpointList>(std::move(list)))}},
      {});
  double left = 1;
  double least = 1;
  double most = 0;
  for (const std::string& rule : got.chains.at(kSvc)) {
    const std::size_t at = rule.find("--probability ");
    const double drawn = at == std::string::npos ? 1 : std::stod(rule.substr(at + 14));
    least = std::min(least, left * drawn);
    most = std::max(most, left * drawn);
    left *= 1 - drawn;
  }
  CHECK(most / least < 1.001);
}

TEST_CASE("no name can break a rule") {
  CHECK(
      Rule().comment("a\"b\\c\nd'e").jump("X").text() == "-m comment --comment \"a?b?c?d?e\" -j X");
  CHECK(
      Rule().comment(std::string(300, 'x')).text() ==
      "-m comment --comment " + std::string(Rule::kLongestComment, 'x'));
}

TEST_CASE("where NodePorts answer") {
  const std::string why =
      "-m comment --comment \"kubernetes service nodeports; NOTE: this must be the last rule in "
      "this "
      "chain\"";
  const auto at = [&](const std::vector<const char*>& texts) {
    std::vector<net::Cidr> ranges;
    ranges.reserve(texts.size());
    for (const char* text : texts) {
      ranges.push_back(*net::parse_cidr(text));
    }
    return node_port_rules(FrameSettings{}, ranges);
  };
  const std::string end = " " + why + " -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS";
  CHECK(at({}).empty());
  CHECK(at({"0.0.0.0/0", "10.0.0.0/8"}) == Rules{"! -d 127.0.0.0/8" + end});
  CHECK(at({"192.0.2.7/32", "127.0.0.0/8"}) == Rules{"-d 192.0.2.7/32" + end});
  CHECK(at({"64.0.0.0/2"}) == Rules{"-d 127.0.0.0/8 " + why + " -j RETURN", "-d 64.0.0.0/2" + end});
}

}  // namespace
}  // namespace shunt::backend::iptables
