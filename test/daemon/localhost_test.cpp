// NodePorts on localhost: an option of ours (pkg/relay/relay.h).

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/unique_fd.h"
#include "daemon/needs_root.h"
#include "daemon/world.h"
#include "netns/client.h"
#include "netns/echo_server.h"

namespace shunt::test {
namespace {

using lab::Answer;
using lab::EchoServer;
using net::Protocol;
using nlohmann::json;

// A configuration file that turns the option on.
class ConfigFile {
 public:
  ConfigFile() {
    char name[] = "/tmp/kube-shunt-localhost-XXXXXX";
    const UniqueFd made(::mkstemp(name));
    path = name;
    std::ofstream(path) << json{
        {"apiVersion", "kubeproxy.config.k8s.io/v1alpha1"},
        {"kind", "KubeProxyConfiguration"},
        {"mode", "nftables"},
        {"clusterCIDR", "10.64.0.0/14,fd64::/48"},
        {"conntrack", {{"maxPerCore", 0}}},
        {"kubeShunt", {{"localhostNodePorts", true}}}};
  }
  ~ConfigFile() { (void)std::remove(path.c_str()); }
  std::string path;
};

World::Options with(const ConfigFile& file) {
  World::Options options;
  options.daemon_flags = {"--config", file.path};
  return options;
}

Answer ask_localhost(const World& world, const std::string& to, Protocol protocol) {
  lab::Question question;
  question.protocol = protocol;
  question.to = address(to);
  return lab::ask(world.lab().node(), question);
}

// A dual-stack NodePort Service on 30080, both of TCP and of UDP.
json node_port_service() {
  json object = service("web", {"10.112.0.10", "fdc0::10"});
  object["spec"]["type"] = "NodePort";
  object["spec"]["ports"] = json::array();
  for (const char* protocol : {"TCP", "UDP"}) {
    object["spec"]["ports"].push_back(
        {{"name", protocol}, {"port", 80}, {"protocol", protocol}, {"nodePort", 30080}});
  }
  return object;
}

json both_protocols(json slice) {
  slice["ports"] = json::array();
  for (const char* protocol : {"TCP", "UDP"}) {
    slice["ports"].push_back({{"name", protocol}, {"port", 8080}, {"protocol", protocol}});
  }
  return slice;
}

// On every address of the two endpoints, for both protocols.
struct Servers {
  explicit Servers(const lab::Netns& where, const std::string& v4, const std::string& v6)
      : tcp4(where, Protocol::Tcp, address(v4), "tcp4"),
        udp4(where, Protocol::Udp, address(v4), "udp4"),
        tcp6(where, Protocol::Tcp, address(v6), "tcp6"),
        udp6(where, Protocol::Udp, address(v6), "udp6") {}
  EchoServer tcp4;
  EchoServer udp4;
  EchoServer tcp6;
  EchoServer udp6;
};

void check_all_answer(const World& world) {
  CHECK(ask_localhost(world, "127.0.0.1:30080", Protocol::Tcp).by == "tcp4");
  CHECK(ask_localhost(world, "127.0.0.1:30080", Protocol::Udp).by == "udp4");
  CHECK(ask_localhost(world, "[::1]:30080", Protocol::Tcp).by == "tcp6");
  CHECK(ask_localhost(world, "[::1]:30080", Protocol::Udp).by == "udp6");
}

// The relay takes over what the kernel was told already, a moment later.
bool listens(const World& world, bool wanted) {
  for (int i = 0; i < 200; ++i) {
    const auto kind = ask_localhost(world, "127.0.0.1:30080", Protocol::Tcp).kind;
    if ((kind != Answer::Kind::Refused) == wanted) {
      return true;
    }
    ::usleep(10'000);
  }
  return false;
}

TEST_CASE("a NodePort answers on localhost when asked to, in both families and protocols") {
  SHUNT_NEEDS_ROOT();
  const ConfigFile file;
  const World world(with(file));
  const Servers servers(world.lab().place("pods"), "10.64.0.1:8080", "[fd64::1]:8080");
  world.apply(
      {node_port_service(),
       both_protocols(slice("web", "IPv4", {"10.64.0.1"})),
       both_protocols(slice("web", "IPv6", {"fd64::1"}))});
  world.settle();
  REQUIRE(listens(world, true));
  check_all_answer(world);
  // The pod must be able to answer: it sees an address of the node.
  CHECK_FALSE(ask_localhost(world, "127.0.0.1:30080", Protocol::Tcp).seen_as.starts_with("127."));

  world.remove("EndpointSlice", "web-4");
  world.settle();
  CHECK(listens(world, false));
  CHECK(ask_localhost(world, "127.0.0.1:30080", Protocol::Udp).kind == Answer::Kind::Refused);
  CHECK(ask_localhost(world, "[::1]:30080", Protocol::Tcp).by == "tcp6");
}

TEST_CASE("with externalTrafficPolicy Local, localhost still reaches endpoints elsewhere") {
  SHUNT_NEEDS_ROOT();
  const ConfigFile file;
  const World world(with(file));
  const Servers servers(world.lab().outside(), "10.64.1.1:8080", "[fd64:0:0:1::1]:8080");
  json object = node_port_service();
  object["spec"]["externalTrafficPolicy"] = "Local";
  json four = both_protocols(slice("web", "IPv4", {"10.64.1.1"}));
  json six = both_protocols(slice("web", "IPv6", {"fd64:0:0:1::1"}));
  for (json* remote : {&four, &six}) {
    (*remote)["endpoints"][0]["nodeName"] = "edge-b";
  }
  world.apply({object, four, six});
  world.settle();
  REQUIRE(listens(world, true));
  check_all_answer(world);
}

TEST_CASE("without the option nobody listens on localhost") {
  SHUNT_NEEDS_ROOT();
  const World world;
  const Servers servers(world.lab().place("pods"), "10.64.0.1:8080", "[fd64::1]:8080");
  world.apply({node_port_service(), both_protocols(slice("web", "IPv4", {"10.64.0.1"}))});
  world.settle();
  CHECK_FALSE(listens(world, true));
}

}  // namespace
}  // namespace shunt::test
