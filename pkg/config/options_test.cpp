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
      {{"--iptables-min-sync-period", "2m"}, "minSyncPeriod"},
      {{"--iptables-sync-period", "soon"}, "syncPeriod"},
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
clientConnection: {kubeconfig: /from/file}
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
