#include "config/check.h"

#include <catch2/catch_test_macros.hpp>

#include "config/testing.h"

// What is refused (spec/config.md §2), and what a mode makes of the same fields.
namespace shunt::config {
namespace {

using testing::error_of;
using testing::has;
using testing::load_fields;
using testing::warned;
using Kind = NodePortAddresses::Kind;

TEST_CASE("a value that breaks a rule is refused by the name of its field") {
  const struct {
    const char* fields;
    const char* named;
  } cases[] = {
      {"featureGates: {NFTablesProxyMode: false}", "featureGates.NFTablesProxyMode"},
      {"featureGates: {InOrderInformers: false}", "featureGates.InOrderInformers"},
      {"iptables: {masqueradeBit: 32}", "iptables.masqueradeBit"},
      {"mode: nftables\niptables: {masqueradeBit: -1}", "iptables.masqueradeBit"},
      {"mode: nftables\nnftables: {masqueradeBit: 32}", "nftables.masqueradeBit"},
      {"conntrack: {maxPerCore: -1}", "conntrack.maxPerCore"},
      {"conntrack: {min: -1}", "conntrack.min"},
      {"conntrack: {tcpEstablishedTimeout: -1s}", "conntrack.tcpEstablishedTimeout"},
      {"conntrack: {tcpCloseWaitTimeout: -1s}", "conntrack.tcpCloseWaitTimeout"},
      {"conntrack: {udpTimeout: -1s}", "conntrack.udpTimeout"},
      {"conntrack: {udpStreamTimeout: -1s}", "conntrack.udpStreamTimeout"},
      {"oomScoreAdj: 1001", "oomScoreAdj"},
      {"oomScoreAdj: -1001", "oomScoreAdj"},
      {"mode: userspace", "mode"},
      {"mode: NFTables", "mode"},
      {"clientConnection: {burst: -1}", "clientConnection.burst"},
      {"clientConnection: {contentType: \"a/b\\r\\nX: y\"}", "clientConnection.contentType"},
      {"clientConnection: {acceptContentTypes: \"\\u00e9\"}",
       "clientConnection.acceptContentTypes"},
      {"configSyncPeriod: -1s", "configSyncPeriod"},
      {"iptables: {syncPeriod: -1s}", "iptables.syncPeriod"},
      {"iptables: {minSyncPeriod: -1s}", "iptables.minSyncPeriod"},
      {"iptables: {minSyncPeriod: 31s}", "iptables.minSyncPeriod"},
      {"mode: nftables\nnftables: {minSyncPeriod: 31s}", "nftables.minSyncPeriod"},
      {"bindAddress: everywhere", "bindAddress"},
      {"bindAddress: 10.0.0.1:80", "bindAddress"},
      {"healthzBindAddress: here", "healthzBindAddress"},
      {"healthzBindAddress: 10.0.0.1:0", "healthzBindAddress"},
      {"healthzBindAddress: 10.0.0.1:65536", "healthzBindAddress"},
      {"metricsBindAddress: localhost:10249", "metricsBindAddress"},
      {"nodePortAddresses: [10.80.0.0/24, primary]", "nodePortAddresses"},
      {"nodePortAddresses: [10.80.0.10]", "nodePortAddresses"},
      {"nodePortAddresses: [null]", "nodePortAddresses"},
      {"showHiddenMetricsForVersion: \"1.34\"", "showHiddenMetricsForVersion"},
      {"detectLocalMode: Guess", "detectLocalMode"},
      {"detectLocalMode: BridgeInterface", "detectLocal.bridgeInterface"},
      {"detectLocalMode: InterfaceNamePrefix", "detectLocal.interfaceNamePrefix"},
      {"detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: 1234567890abcdefg}",
       "detectLocal.bridgeInterface"},
      {"clusterCIDR: \"10.0.0.0/8, fd00::/48\"", "clusterCIDR"},
      {"clusterCIDR: 10.0.0.0/8,", "clusterCIDR"},
      {"clusterCIDR: 10.0.0.0/8,11.0.0.0/8", "clusterCIDR"},
      {"clusterCIDR: 10.0.0.0/8,fd00::/48,fd01::/48", "clusterCIDR"},
      {"logging: {format: xml}", "logging.format"},
      {"logging: {verbosity: 2147483648}", "logging.verbosity"},
      {"logging: {format: json, vmodule: [{filePattern: a, verbosity: 1}]}", "logging.vmodule"},
      {"logging: {vmodule: [{filePattern: \"\", verbosity: 1}]}", "logging.vmodule"},
      {"logging: {options: {json: {splitStream: true}}}", "logging.options.json.splitStream"},
      {"logging: {options: {text: {infoBufferSize: 64Ki}}}", "logging.options.text.infoBufferSize"},
      {"kubeShunt: {watchStallTimeout: -1s}", "kubeShunt.watchStallTimeout"},
      {"kubeShunt: {serviceMetricsLimit: -1}", "kubeShunt.serviceMetricsLimit"},
      {"kubeShunt: {iptablesVariant: both}", "kubeShunt.iptablesVariant"},
      {"kubeShunt: {readyzMaxContactAge: -1s}", "kubeShunt.readyzMaxContactAge"},
      {"mode: ipvs\nipvs: {tcpTimeout: -1s}", "ipvs.tcpTimeout"},
      {"mode: ipvs\nipvs: {tcpFinTimeout: -1s}", "ipvs.tcpFinTimeout"},
      {"mode: ipvs\nipvs: {udpTimeout: -1s}", "ipvs.udpTimeout"},
      {"mode: ipvs\nipvs: {excludeCIDRs: [x]}", "ipvs.excludeCIDRs"},
      {"mode: ipvs\nipvs: {syncPeriod: 1s, minSyncPeriod: 2s}", "ipvs.minSyncPeriod"},
      {"mode: ipvs\nipvs: {scheduler: abcdefghijklmnop}", "ipvs.scheduler"},
      {"mode: ipvs\nipvs: {scheduler: RR}", "ipvs.scheduler"},
      {"mode: ipvs\nipvs: {scheduler: \"w rr\"}", "ipvs.scheduler"},
      {"mode: ipvs\nipvs: {scheduler: \"../rr\"}", "ipvs.scheduler"},
      {"mode: ipvs\niptables: {masqueradeBit: 32}", "iptables.masqueradeBit"},
  };
  for (const auto& c : cases) {
    DYNAMIC_SECTION(c.fields) {
      const auto got = load_fields(c.fields);
      CHECK(has(error_of(got), std::string(c.named) + ": "));
    }
  }
}

TEST_CASE("all that is wrong is said at once, in one line") {
  const auto got = load_fields(R"(bindAddress: here
conntrack: {min: -1, maxPerCore: -2}
oomScoreAdj: 5000
clusterCIDR: "a\nb"
)");
  const std::string error = error_of(got);
  for (const char* field :
       {"bindAddress", "conntrack.min", "conntrack.maxPerCore", "oomScoreAdj", "clusterCIDR"}) {
    CHECK(has(error, field));
  }
  CHECK_FALSE(has(error, "\n"));
}

TEST_CASE("what does not count for the mode is not judged") {
  for (const char* fields :
       {"nftables: {masqueradeBit: 99, syncPeriod: -1s}\n",
        "ipvs: {tcpTimeout: -1s, scheduler: R/R, syncPeriod: -1s}\n",
        "mode: ipvs\nnftables: {masqueradeBit: 99}\niptables: {syncPeriod: -1s}\n",
        "mode: nftables\niptables: {syncPeriod: 1s, minSyncPeriod: 9s}\n",
        "detectLocalMode: NodeCIDR\nclusterCIDR: junk\n"}) {
    INFO(fields);
    CHECK(error_of(load_fields(fields)).empty());
  }
}

TEST_CASE("addresses are read sloppily: leading zeros, mapped IPv4, host bits") {
  const auto got = load_fields(
      "bindAddress: 010.080.0.010\nclusterCIDR: 10.244.3.4/16\n"
      "nodePortAddresses: [\"::ffff:10.80.0.7/120\"]\n");
  REQUIRE(got);
  CHECK(net::to_string(got->bind_address) == "10.80.0.10");
  CHECK(net::to_string(got->cluster_cidrs.at(0)) == "10.244.0.0/16");
  CHECK(net::to_string(got->node_port_addresses.ranges.at(0)) == "10.80.0.0/24");
}

TEST_CASE("an empty mode is nftables with what an iptables-mode user had") {
  const auto got = load_fields(
      R"(iptables: {masqueradeBit: 5, masqueradeAll: true, syncPeriod: 7s, minSyncPeriod: 2s}
nftables: {masqueradeBit: 6}
)");
  REQUIRE(got);
  CHECK(got->mode == Mode::Auto);
  CHECK(got->masquerade_bit == 5);
  CHECK(got->masquerade_all);
  CHECK(got->sync_period == Millis{7'000});
  CHECK(got->min_sync_period == Millis{2'000});
  CHECK(got->node_port_addresses.kind == Kind::All);
  CHECK(got->localhost_node_ports);
  CHECK(warned(*got, "nftables.masqueradeBit"));
  CHECK_FALSE(warned(*got, "iptables."));
}

TEST_CASE("mode nftables is kube-proxy's nftables") {
  const auto got = load_fields(R"(mode: nftables
iptables: {masqueradeBit: 5, masqueradeAll: true, syncPeriod: 7s, localhostNodePorts: true}
nftables: {masqueradeBit: 6, minSyncPeriod: 3s}
)");
  REQUIRE(got);
  CHECK(got->mode == Mode::Nftables);
  CHECK(got->masquerade_bit == 6);
  CHECK_FALSE(got->masquerade_all);
  CHECK(got->sync_period == Millis{30'000});
  CHECK(got->min_sync_period == Millis{3'000});
  CHECK(got->node_port_addresses.kind == Kind::Primary);
  CHECK_FALSE(got->localhost_node_ports);
  CHECK(warned(*got, "iptables.masqueradeBit"));
}

TEST_CASE("mode ipvs has its section, and masquerades by the section iptables, as kube-proxy's") {
  const auto got = load_fields(R"(mode: ipvs
iptables: {masqueradeBit: 5, masqueradeAll: true, syncPeriod: 7s}
nftables: {masqueradeBit: 6, minSyncPeriod: 3s}
ipvs:
  scheduler: wlc
  excludeCIDRs: [10.9.0.1/16, "fd09::/64"]
  strictARP: true
  tcpTimeout: 15m
  tcpFinTimeout: 1500ms
  udpTimeout: 5m1s
  syncPeriod: 20s
  minSyncPeriod: 2s
)");
  CHECK(error_of(got).empty());
  REQUIRE(got);
  CHECK(got->mode == Mode::Ipvs);
  CHECK(got->masquerade_bit == 5);
  CHECK(got->masquerade_all);
  CHECK(got->sync_period == Millis{20'000});
  CHECK(got->min_sync_period == Millis{2'000});
  CHECK(got->ipvs.scheduler == "wlc");
  CHECK(
      got->ipvs.exclude_cidrs ==
      std::vector{*net::parse_cidr("10.9.0.0/16"), *net::parse_cidr("fd09::/64")});
  CHECK(got->ipvs.strict_arp);
  CHECK(got->ipvs.tcp_timeout.count() == 900);
  CHECK(got->ipvs.tcp_fin_timeout.count() == 1);
  CHECK(got->ipvs.udp_timeout.count() == 301);
  CHECK(warned(*got, "iptables.syncPeriod: has no effect"));
  CHECK(warned(*got, "nftables.masqueradeBit: has no effect"));
  CHECK(warned(*got, "nftables.minSyncPeriod: has no effect"));
  CHECK(got->warnings.size() == 3);
}

TEST_CASE(
    "mode ipvs without a word is kube-proxy's: rr, NodePorts on all addresses but localhost") {
  for (const char* fields : {"mode: ipvs\n", "mode: ipvs\nipvs: {scheduler: \"\"}\n"}) {
    const auto got = load_fields(fields);
    REQUIRE(got);
    CHECK(got->warnings.empty());
    CHECK(got->ipvs.scheduler == "rr");
    CHECK(got->ipvs.exclude_cidrs.empty());
    CHECK_FALSE(got->ipvs.strict_arp);
    CHECK(got->ipvs.tcp_timeout.count() == 0);
    CHECK(got->ipvs.tcp_fin_timeout.count() == 0);
    CHECK(got->ipvs.udp_timeout.count() == 0);
    CHECK(got->sync_period == Millis{30'000});
    CHECK(got->min_sync_period.count() == 0);
    CHECK(got->node_port_addresses.kind == Kind::All);
    CHECK_FALSE(got->localhost_node_ports);
  }
}

TEST_CASE("other modes know the ranges whose virtual servers are left alone, and nothing more") {
  for (const char* mode : {"", "nftables"}) {
    const auto got = load_fields(
        std::string("mode: \"") + mode +
        "\"\nipvs: {scheduler: lc, strictARP: true, excludeCIDRs: [10.9.0.0/16, x]}\n");
    REQUIRE(got);
    CHECK(got->ipvs.exclude_cidrs == std::vector{*net::parse_cidr("10.9.0.0/16")});
    CHECK(got->ipvs.scheduler == "rr");
    CHECK_FALSE(got->ipvs.strict_arp);
    CHECK(warned(*got, "ipvs.scheduler: has no effect"));
    CHECK(warned(*got, "ipvs.strictARP: has no effect"));
    CHECK(warned(*got, "ipvs.excludeCIDRs: \"x\" is not a CIDR"));
    CHECK(got->warnings.size() == 3);
  }
}

TEST_CASE("NodePorts are on localhost by an empty mode and its addresses, or as we are told") {
  const struct {
    const char* fields;
    bool on;
    bool by_rules = false;
  } cases[] = {
      {"mode: iptables\n", false, true},
      {"mode: iptables\nnodePortAddresses: [10.80.0.0/24]\n", false},
      {"mode: iptables\niptables: {localhostNodePorts: false}\n", false},
      {"mode: iptables\nkubeShunt: {localhostNodePorts: true}\n", true},
      {"mode: iptables\nkubeShunt: {localhostNodePorts: false}\n", false},
      {"mode: \"\"\n", true},
      {"iptables: {localhostNodePorts: false}\n", false},
      {"nodePortAddresses: [10.80.0.0/24]\n", false},
      {"nodePortAddresses: [10.80.0.0/24, 127.0.0.0/8]\n", true},
      {"nodePortAddresses: [127.0.0.1/32]\n", true},
      {"nodePortAddresses: [\"0.0.0.0/0\"]\n", true},
      {"nodePortAddresses: [\"fd00::/8\"]\n", true},  // IPv4 has no ranges, so it has all
      {"nodePortAddresses: [primary]\n", false},
      {"mode: nftables\n", false},
      {"mode: nftables\nnodePortAddresses: [127.0.0.0/8]\n", false},
      {"mode: nftables\nkubeShunt: {localhostNodePorts: true}\n", true},
      {"mode: ipvs\n", false},
      {"mode: ipvs\niptables: {localhostNodePorts: true}\nnodePortAddresses: [127.0.0.0/8]\n",
       false},
      {"mode: ipvs\nkubeShunt: {localhostNodePorts: true}\n", true},
      {"kubeShunt: {localhostNodePorts: false}\n", false},
      {"nodePortAddresses: [primary]\nkubeShunt: {localhostNodePorts: true}\n", true},
  };
  for (const auto& c : cases) {
    DYNAMIC_SECTION(c.fields) {
      const auto got = load_fields(c.fields);
      REQUIRE(got);
      CHECK(got->localhost_node_ports == c.on);
      CHECK(got->route_localnet == c.by_rules);
    }
  }
}

TEST_CASE("the sync loop is told where NodePorts answer as ranges") {
  CHECK(NodePortAddresses{Kind::Primary, {}}.or_none_for_primary().empty());
  CHECK(
      NodePortAddresses{Kind::All, {}}.or_none_for_primary() ==
      std::vector{*net::parse_cidr("0.0.0.0/0"), *net::parse_cidr("::/0")});
  const std::vector some{*net::parse_cidr("10.0.0.0/8")};
  CHECK(NodePortAddresses{Kind::Ranges, some}.or_none_for_primary() == some);
}

TEST_CASE("mode iptables has its section, and a variant that can be named") {
  const auto plain = load_fields("mode: iptables\niptables: {masqueradeBit: 12, syncPeriod: 7s}\n");
  REQUIRE(plain);
  CHECK(plain->mode == Mode::Iptables);
  CHECK(plain->iptables_variant == IptablesVariant::Auto);
  CHECK(plain->masquerade_bit == 12);
  CHECK(plain->sync_period == Millis(7'000));
  CHECK(plain->route_localnet);
  const auto named = load_fields("mode: iptables\nkubeShunt: {iptablesVariant: legacy}\n");
  REQUIRE(named);
  CHECK(named->iptables_variant == IptablesVariant::Legacy);
}

TEST_CASE("the back end follows the mode, and for an empty one the kernel") {
  for (const bool has_ipvs : {true, false}) {
    CHECK(decide_mode(Mode::Auto, true, has_ipvs).back_end == BackEnd::Nftables);
    CHECK(decide_mode(Mode::Auto, true, has_ipvs).available);
    CHECK(decide_mode(Mode::Nftables, true, has_ipvs).available);
    const auto old_kernel = decide_mode(Mode::Auto, false, has_ipvs);
    CHECK(old_kernel.back_end == BackEnd::Iptables);
    CHECK(old_kernel.available);
    CHECK(has(old_kernel.why, "nf_tables"));
    CHECK_FALSE(decide_mode(Mode::Nftables, false, has_ipvs).available);
    CHECK(decide_mode(Mode::Iptables, true, has_ipvs).back_end == BackEnd::Iptables);
  }
}

TEST_CASE("the IPVS mode needs IPVS and nf_tables, and says which is missing") {
  for (const bool has_nf_tables : {true, false}) {
    for (const bool has_ipvs : {true, false}) {
      const auto decision = decide_mode(Mode::Ipvs, has_nf_tables, has_ipvs);
      CHECK(decision.back_end == BackEnd::Ipvs);
      CHECK(decision.available == (has_nf_tables && has_ipvs));
      CHECK(has(decision.why, "has no nf_tables") == !has_nf_tables);
      CHECK(has(decision.why, "has no IPVS") == !has_ipvs);
    }
  }
}

TEST_CASE("gates: one does something, known ones nothing, unknown ones a warning") {
  const auto off = load_fields("featureGates: {AllowServiceExternalIPs: false}\n");
  REQUIRE(off);
  CHECK_FALSE(off->allow_external_ips);
  CHECK(off->warnings.empty());

  const auto others = load_fields(
      "featureGates: {NFTablesProxyMode: true, WatchListClient: false, NativeHistograms: false, "
      "SomeNewGate: true}\n");
  REQUIRE(others);
  CHECK(others->allow_external_ips);
  CHECK(others->warnings.size() == 2);
  CHECK(warned(*others, "WatchListClient"));
  CHECK(warned(*others, "SomeNewGate"));

  for (const char* gates : {"LoggingAlphaOptions: true", "AllAlpha: true"}) {
    CHECK(load_fields(
        std::string("featureGates: {") + gates +
        "}\nlogging: {options: {text: {splitStream: true, infoBufferSize: 1Ki}}}\n"));
  }
}

}  // namespace
}  // namespace shunt::config
