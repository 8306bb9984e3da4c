// The addresses of Services in mode ipvs: there to be seen on kube-ipvs0, and yet not the node's.
// And what kube-proxy's ipvs mode left is taken over, connections and all.

#include <sys/socket.h>

#include <thread>

#include "daemon/arp_question.h"
#include "daemon/held_connection.h"
#include "daemon/ipvs_world.h"
#include "daemon/load.h"
#include "netns/sockets.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr const char* kClusterIp = "10.112.0.10";
constexpr const char* kBalancer = "192.0.2.4";
constexpr const char* kExternal = "203.0.113.9";
constexpr const char* kClusterIp6 = "fdc0::10";

lab::LabSpec client_and_pod() {
  lab::LabSpec spec = lab::default_lab_spec();
  spec.pods = {
      {"client", {net::parse_ip("10.64.0.9").value(), net::parse_ip("fd64::9").value()}},
      {"web", {net::parse_ip("10.64.0.1").value(), net::parse_ip("fd64::1").value()}}};
  return spec;
}

json web() {
  json out = service("web", {kClusterIp, kClusterIp6});
  out["spec"]["type"] = "LoadBalancer";
  out["spec"]["ports"][0]["nodePort"] = 30'080;
  out["spec"]["externalIPs"] = {kExternal};
  out["status"]["loadBalancer"]["ingress"] = {{{"ip", kBalancer}}};
  return out;
}

std::string with_port(const std::string& ip, int port) {
  return (ip.find(':') == std::string::npos ? ip : "[" + ip + "]") + ":" + std::to_string(port);
}

struct WebNode {
  explicit WebNode(bool start = true) {
    world.apply({web(), slice("web", "IPv4", {"10.64.0.1"}), slice("web", "IPv6", {"fd64::1"})});
    if (start) {
      start_in_mode(world, "ipvs");
    }
  }
  lab::Answer ask_from(const char* place, const char* from, const std::string& ip, int port) const {
    lab::Question question;
    if (from != nullptr) {
      question.from = address(from);
    }
    question.to = net::parse_socket_address(with_port(ip, port)).value();
    question.timeout = 3s;
    return lab::ask(world.lab().place(place), question);
  }

  World world{configured_by_file(client_and_pod())};
  lab::EchoServer web4{
      world.lab().place("web"), net::Protocol::Tcp, address("10.64.0.1:8080"), "web"};
  lab::EchoServer web6{
      world.lab().place("web"), net::Protocol::Tcp, address("[fd64::1]:8080"), "web"};
};

// Who stands where; the address that outside asks from is in no range of pods.
struct Client {
  const char* place;
  const char* from;
  const char* from6;
};
constexpr Client kClients[] = {
    {"outside", "198.51.100.7:0", "[2001:db8:e::7]:0"},
    {"client", "10.64.0.9:0", "[fd64::9]:0"},
    {"node", nullptr, nullptr}};

TEST_CASE("a Service's address answers for the Service, and for no port of the host", "[ipvs]") {
  SHUNT_NEEDS_IPVS();
  const WebNode node;
  // As sshd and the kubelet listen.
  const lab::EchoServer host4(
      node.world.lab().node(), net::Protocol::Tcp, address("0.0.0.0:2222"), "host");
  const lab::EchoServer host6(
      node.world.lab().node(), net::Protocol::Tcp, address("[::]:2222"), "host");
  REQUIRE(node.ask_from("outside", "198.51.100.7:0", "10.80.0.10", 2222).by == "host");
  for (const Client& client : kClients) {
    for (const char* const ip : {kClusterIp, kBalancer, kExternal, kClusterIp6}) {
      INFO(client.place << " to " << ip);
      const char* const from = ip == kClusterIp6 ? client.from6 : client.from;
      CHECK(node.ask_from(client.place, from, ip, 80).by == "web");
      CHECK(node.ask_from(client.place, from, ip, 2222).by != "host");
    }
  }
}

// The source that the node's own connection gets when it chooses none.
std::string chosen_source(const World& world, const std::string& to) {
  return world.lab().node().run([&] {
    const net::SocketAddress server = net::parse_socket_address(to).value();
    const UniqueFd fd = lab::open_socket(net::Protocol::Udp, server.ip.family);
    const lab::RawAddress raw = lab::to_raw(server);
    if (::connect(fd.get(), raw.get(), raw.length) != 0) {
      lab::raise_errno("connect");
    }
    return net::to_string(lab::local_address(fd.get()).ip);
  });
}

TEST_CASE("a Service's address is not the node's: no ARP, no source, no local route", "[ipvs]") {
  SHUNT_NEEDS_IPVS();
  const WebNode node;
  const lab::Netns& outside = node.world.lab().outside();
  const std::string bound = node.world.on_node("ip -o addr show dev kube-ipvs0");
  REQUIRE(arp_answers(outside, "uplink", net::parse_ip("10.80.0.10").value()));
  for (const char* const ip : {kClusterIp, kBalancer, kExternal}) {
    INFO(ip);
    CHECK(bound.find(std::string(ip) + "/32") != std::string::npos);
    CHECK_FALSE(arp_answers(outside, "uplink", net::parse_ip(ip).value()));
    CHECK_FALSE(arp_answers(node.world.lab().place("client"), "eth0", net::parse_ip(ip).value()));
    CHECK(chosen_source(node.world, with_port(ip, 80)) == "10.80.0.10");
    CHECK_FALSE(node.world.on_node(std::string("ip route get ") + ip).starts_with("local "));
  }
  CHECK(bound.find(std::string(kClusterIp6) + "/128") != std::string::npos);
  CHECK(chosen_source(node.world, with_port(kClusterIp6, 80)) == "fd80::10");
  CHECK_FALSE(node.world.on_node(std::string("ip route get ") + kClusterIp6).starts_with("local "));
  // To other addresses of the node's world, too.
  CHECK(chosen_source(node.world, "198.51.100.7:80") == "10.80.0.10");
  CHECK(chosen_source(node.world, "[2001:db8:e::7]:80") == "fd80::10");
  CHECK(
      node.ask_from("node", nullptr, kClusterIp, 80).seen_as.find(kClusterIp) == std::string::npos);
}

TEST_CASE("a routing rule that somebody takes away is back at once, and told of", "[ipvs]") {
  SHUNT_NEEDS_IPVS();
  const WebNode node;
  for (const char* const family : {"-4", "-6"}) {
    node.world.on_node(std::string("ip ") + family + " rule del priority 99");
  }
  node.world.await_log("what=routing-rule", 2);
  node.world.settle();
  for (const Client& client : kClients) {
    CHECK(node.ask_from(client.place, client.from, kClusterIp, 80).by == "web");
    CHECK(node.ask_from(client.place, client.from6, kClusterIp6, 80).by == "web");
  }
}

// What kube-proxy had: addresses that are local, one of a Service that is gone, a real server that
// is gone, and one that drains.
void leave_as_kube_proxy(const World& world) {
  world.on_node(
      "sysctl -qw net.ipv4.vs.conntrack=1\n"
      // Its rules make the kernel track connections; nothing else here does.
      "nft add table ip tracked\n"
      "nft add chain ip tracked seen '{ type filter hook prerouting priority -150; }'\n"
      "nft add rule ip tracked seen ct state invalid counter\n"
      "ip link add kube-ipvs0 type dummy\n"
      "for ip in 10.112.0.10 10.112.0.77 192.0.2.4; do ip addr add $ip/32 dev kube-ipvs0; done\n"
      "ipvsadm -R <<END\n"
      "-A -t 10.112.0.10:80 -s rr\n"
      "-a -t 10.112.0.10:80 -r 10.64.0.1:8080 -m -w 1\n"
      "-A -t 192.0.2.4:80 -s rr\n"
      "-a -t 192.0.2.4:80 -r 10.64.0.1:8080 -m -w 1\n"
      "-a -t 192.0.2.4:80 -r 10.64.0.66:8080 -m -w 0\n"
      "-A -t 10.112.0.77:80 -s rr\n"
      "-a -t 10.112.0.77:80 -r 10.64.0.1:8080 -m -w 1\n"
      "-A -t 10.80.0.10:30080 -s rr\n"
      "-a -t 10.80.0.10:30080 -r 10.64.0.1:8080 -m -w 1\n"
      "END\n");
}

TEST_CASE("what kube-proxy's ipvs mode left is taken over, with its connections", "[ipvs]") {
  SHUNT_NEEDS_IPVS();
  WebNode node(false);
  World& world = node.world;
  leave_as_kube_proxy(world);
  std::vector<HeldConnection> held;
  for (const char* const to : {"10.112.0.10:80", "192.0.2.4:80", "10.80.0.10:30080"}) {
    held.emplace_back(world.lab().outside(), address("198.51.100.7:0"), address(to));
    held.emplace_back(world.lab().place("client"), std::nullopt, address(to));
  }
  check_alive(held);

  Load load(world, 4000ms);
  start_in_mode(world, "ipvs");
  check_alive(held);
  const lab::LoadReport report = load.report();
  INFO(to_text(report));
  CHECK(report.unanswered() == 0);
  check_alive(held);

  const std::string saved = saved_servers(world);
  INFO(saved);
  for (const char* const server : {"10.112.0.10:80", "192.0.2.4:80", "10.80.0.10:30080"}) {
    INFO(server);
    CHECK(has_line(saved, std::string("-A -t ") + server + " -s rr"));
    CHECK(has_line(saved, std::string("-a -t ") + server + " -r 10.64.0.1:8080 -m -w 1"));
  }
  CHECK(saved.find("10.64.0.66") == std::string::npos);   // nothing of it was open
  CHECK(saved.find("10.112.0.77") == std::string::npos);  // nobody's any more
  const std::string bound = world.on_node("ip -o addr show dev kube-ipvs0");
  CHECK(bound.find("10.112.0.10/32") != std::string::npos);
  CHECK(bound.find("10.112.0.77/32") == std::string::npos);
  CHECK_FALSE(world.on_node("ip route get 10.112.0.10").starts_with("local "));
}

TEST_CASE("in mode nftables kube-proxy's virtual servers end with their connections", "[ipvs]") {
  SHUNT_NEEDS_IPVS();
  WebNode node(false);
  World& world = node.world;
  leave_as_kube_proxy(world);
  std::vector<HeldConnection> held;
  for (const char* const to : {"10.112.0.10:80", "192.0.2.4:80", "10.80.0.10:30080"}) {
    held.emplace_back(world.lab().outside(), address("198.51.100.7:0"), address(to));
  }
  start_in_mode(world, "nftables");
  check_alive(held);
  for (const char* const ip : {kClusterIp, kBalancer}) {
    CHECK(node.ask_from("outside", "198.51.100.7:0", ip, 80).by == "web");
  }
  held.clear();
  const auto deadline = std::chrono::steady_clock::now() + 90s;
  const auto traces = [&] {
    return world.on_node("ipvsadm -Sn; ip -o link show | grep kube-ipvs0; true");
  };
  while (!traces().empty() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(500ms);
  }
  CHECK(traces().empty());
  CHECK(node.ask_from("outside", "198.51.100.7:0", kClusterIp, 80).by == "web");
}

}  // namespace
}  // namespace shunt::test
