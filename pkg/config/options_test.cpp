#include "config/options.h"

#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <fstream>

#include "base/unique_fd.h"

namespace shunt::config {
namespace {

Result<Invocation> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "kube-shunt");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

TEST_CASE("durations are Go's") {
  CHECK(parse_duration("30s") == Millis{30'000});
  CHECK(parse_duration("1m30s") == Millis{90'000});
  CHECK(parse_duration("1.5h") == Millis{5'400'000});
  CHECK(parse_duration("100ms") == Millis{100});
  CHECK(parse_duration("0") == Millis{0});
  CHECK(parse_duration("0s") == Millis{0});
  for (const char* bad : {"", "5", "s", "-1s", "1x", "1s ", "nan", "1e300h"}) {
    CHECK_FALSE(parse_duration(bad));
  }
}

TEST_CASE("flags of kube-proxy are understood") {
  const auto got = parse(
      {"--kubeconfig",
       "/k",
       "--hostname-override",
       " Node1 ",
       "--cluster-cidr",
       "10.244.0.0/16,fd00::/48",
       "--masquerade-all",
       "--v=2"});
  REQUIRE(got);
  CHECK(got->options.kubeconfig == "/k");
  CHECK(got->options.node_name == "node1");
  CHECK(got->options.cluster_cidrs.size() == 2);
  CHECK(got->options.masquerade_all);
  CHECK(got->options.verbosity == 2);
}

TEST_CASE("without a word about them, the node's facts are kube-proxy's defaults") {
  const auto got = parse({"--hostname-override", "n"});
  REQUIRE(got);
  const Options& o = got->options;
  CHECK(o.node_port_addresses.empty());  // primary
  CHECK(o.bind_address == net::IpAddress{});
  CHECK(o.conntrack.max_per_core == 32'768);
  CHECK(o.conntrack.min == 131'072);
  CHECK(o.conntrack.tcp_established_timeout == std::chrono::hours(24));
  CHECK(o.conntrack.tcp_close_wait_timeout == std::chrono::hours(1));
  CHECK_FALSE(o.conntrack.tcp_be_liberal);
  CHECK(o.conntrack.udp_timeout.count() == 0);
  CHECK(o.conntrack.udp_stream_timeout.count() == 0);
  CHECK_FALSE(o.localhost_node_ports);
}

TEST_CASE("the node's facts can be said with flags") {
  const auto got = parse(
      {"--hostname-override",
       "n",
       "--nodeport-addresses",
       "10.80.0.7/24,fd80::/64",
       "--bind-address",
       "10.80.0.10",
       "--conntrack-max-per-core=0",
       "--conntrack-min",
       "7",
       "--conntrack-tcp-timeout-established=0",
       "--conntrack-tcp-timeout-close-wait=90s",
       "--conntrack-tcp-be-liberal",
       "--conntrack-udp-timeout=1m",
       "--conntrack-udp-timeout-stream=2m"});
  REQUIRE(got);
  const Options& o = got->options;
  CHECK(
      o.node_port_addresses ==
      std::vector{*net::parse_cidr("10.80.0.0/24"), *net::parse_cidr("fd80::/64")});
  CHECK(o.bind_address == *net::parse_ip("10.80.0.10"));
  CHECK(o.conntrack.max_per_core == 0);
  CHECK(o.conntrack.min == 7);
  CHECK(o.conntrack.tcp_established_timeout.count() == 0);
  CHECK(o.conntrack.tcp_close_wait_timeout.count() == 90);
  CHECK(o.conntrack.tcp_be_liberal);
  CHECK(o.conntrack.udp_timeout.count() == 60);
  CHECK(o.conntrack.udp_stream_timeout.count() == 120);
  CHECK(parse({"--hostname-override", "n", "--nodeport-addresses", "primary"})
            ->options.node_port_addresses.empty());
  CHECK(parse({"--hostname-override", "n", "--bind-address=", "--v=2"})->options.verbosity == 2);
  CHECK(
      parse({"--hostname-override", "n", "--bind-address", ""})->options.bind_address ==
      net::IpAddress{});
}

TEST_CASE("a flag that is given twice has its last value, a list has all of them") {
  const auto got = parse(
      {"--hostname-override",
       "n",
       "--conntrack-min=1",
       "--conntrack-min=2",
       "--masquerade-all",
       "--masquerade-all=false",
       "--nodeport-addresses=10.0.0.0/8",
       "--nodeport-addresses=11.0.0.0/8,fd00::/8"});
  REQUIRE(got);
  CHECK(got->options.conntrack.min == 2);
  CHECK_FALSE(got->options.masquerade_all);
  CHECK(got->options.node_port_addresses.size() == 3);
}

TEST_CASE("wrong settings are refused by name") {
  const struct {
    std::vector<const char*> arguments;
    const char* named;
  } cases[] = {
      {{"--cluster-cidr", "10.0.0.0/8, fd00::/48"}, "clusterCIDR"},
      {{"--cluster-cidr", "10.0.0.0/8,11.0.0.0/8"}, "clusterCIDR"},
      {{"--detect-local-mode", "Guess"}, "detectLocalMode"},
      {{"--detect-local-mode", "BridgeInterface"}, "bridgeInterface"},
      {{"--detect-local-mode", "InterfaceNamePrefix"}, "interfaceNamePrefix"},
      {{"--proxy-mode", "ipvs"}, "mode"},
      {{"--hostname-override", "  "}, "hostnameOverride"},
      {{"--kube-api-content-type", "a/b\r\nX: y"}, "contentType"},
      {{"--iptables-min-sync-period", "2m"}, "minSyncPeriod"},
      {{"--iptables-sync-period", "soon"}, "syncPeriod"},
      {{"--nodeport-addresses", "10.80.0.0/24,primary"}, "nodePortAddresses"},
      {{"--nodeport-addresses", "10.80.0.10"}, "nodePortAddresses"},
      {{"--bind-address", "everywhere"}, "bindAddress"},
      {{"--conntrack-max-per-core=-1"}, "conntrack.maxPerCore"},
      {{"--conntrack-min=-1"}, "conntrack.min"},
      {{"--conntrack-min", "3000000000"}, "conntrack-min"},
      {{"--conntrack-tcp-timeout-established", "day"}, "conntrack.tcpEstablishedTimeout"},
      {{"--conntrack-tcp-timeout-close-wait=-1s"}, "conntrack.tcpCloseWaitTimeout"},
      {{"--conntrack-udp-timeout", "30"}, "conntrack.udpTimeout"},
      {{"--conntrack-udp-timeout-stream", ""}, "conntrack.udpStreamTimeout"},
      {{"--no-such-flag"}, "no-such-flag"},
      {{"argument"}, "argument"},
  };
  for (const auto& c : cases) {
    DYNAMIC_SECTION(c.named << " " << c.arguments.back()) {
      const auto got = parse(c.arguments);
      REQUIRE_FALSE(got);
      CHECK(got.error().what.find(c.named) != std::string::npos);
    }
  }
}

class File {
 public:
  explicit File(const std::string& content) {
    char name[] = "/tmp/kube-shunt-config-XXXXXX";
    const UniqueFd made(::mkstemp(name));
    path = name;
    std::ofstream(path) << content;
  }
  ~File() { (void)std::remove(path.c_str()); }
  std::string path;
};

TEST_CASE("a KubeProxyConfiguration is read, and what it says beats the flags") {
  const File file(R"(apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: /from/file, contentType: a/b, acceptContentTypes: "c/d, e/f"}
hostnameOverride: from-file
mode: nftables
clusterCIDR: 10.64.0.0/14
detectLocalMode: InterfaceNamePrefix
detectLocal: {interfaceNamePrefix: pod}
nftables: {masqueradeAll: true, masqueradeBit: 20, minSyncPeriod: 0s, syncPeriod: 1m}
ipvs: {scheduler: rr}
logging: {verbosity: 3}
)");
  const auto got = parse(
      {"--config",
       file.path.c_str(),
       "--cluster-cidr",
       "1.0.0.0/8",
       "--hostname-override",
       "flag"});
  REQUIRE(got);
  const Options& o = got->options;
  CHECK(o.kubeconfig == "/from/file");
  CHECK(o.content_type == "a/b");
  CHECK(o.accept_content_types == "c/d, e/f");
  CHECK(o.node_name == "flag");
  CHECK(net::to_string(o.cluster_cidrs.at(0)) == "10.64.0.0/14");
  CHECK(o.detect_local == DetectLocalMode::InterfaceNamePrefix);
  CHECK(o.interface_name_prefix == "pod");
  CHECK(o.masquerade_all);
  CHECK(o.masquerade_bit == 20);
  CHECK(o.sync_period == Millis{60'000});
  CHECK(o.verbosity == 3);
  CHECK(o.warnings == std::vector<std::string>{"ipvs"});
}

TEST_CASE("the node's facts can be said in a file; null and nothing are the default") {
  const std::string head =
      "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"
      "hostnameOverride: n\n";
  const File file(head + R"(nodePortAddresses: [10.80.0.0/24]
bindAddress: "fd80::10"
conntrack: {maxPerCore: 0, min: null, tcpEstablishedTimeout: 0s, tcpBeLiberal: true, udpTimeout: 3s}
kubeShunt: {localhostNodePorts: true}
)");
  const auto got = parse({"--config", file.path.c_str(), "--conntrack-min", "9"});
  REQUIRE(got);
  const Options& o = got->options;
  CHECK(o.node_port_addresses == std::vector{*net::parse_cidr("10.80.0.0/24")});
  CHECK(o.bind_address == *net::parse_ip("fd80::10"));
  CHECK(o.conntrack.max_per_core == 0);
  CHECK(o.conntrack.min == 131'072);
  CHECK(o.conntrack.tcp_established_timeout.count() == 0);
  CHECK(o.conntrack.tcp_close_wait_timeout == std::chrono::hours(1));
  CHECK(o.conntrack.tcp_be_liberal);
  CHECK(o.conntrack.udp_timeout.count() == 3);
  CHECK(o.localhost_node_ports);
  CHECK(o.warnings.empty());

  for (const char* text : {"nodePortAddresses: null\n", "nodePortAddresses: []\n"}) {
    const File primary(head + text);
    CHECK(parse({"--config", primary.path.c_str()})->options.node_port_addresses.empty());
  }
  const File wrong(head + "conntrack: {maxPerCore: many}\n");
  const auto refused = parse({"--config", wrong.path.c_str()});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what.find("maxPerCore") != std::string::npos);
}

TEST_CASE("a file that is no KubeProxyConfiguration is refused") {
  for (const char* text :
       {"", "a: [", "kind: Service\napiVersion: v1\n", "- 1\n", "kind: KubeProxyConfiguration\n"}) {
    const File file(text);
    CHECK_FALSE(parse({"--config", file.path.c_str()}));
  }
  CHECK_FALSE(parse({"--config", "/no/such/file"}));
}

}  // namespace
}  // namespace shunt::config
