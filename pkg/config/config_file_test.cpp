#include "config/config_file.h"

#include <catch2/catch_test_macros.hpp>

#include "config/testing.h"

namespace shunt::config {
namespace {

using testing::error_of;
using testing::has;
using testing::load_fields;
using testing::warned;
using testing::with_head;

TEST_CASE("every type of field is read, from YAML and from JSON") {
  const auto yaml = load_fields(R"(clientConnection: {qps: 2.5, burst: 20}
conntrack: {maxPerCore: 0x10, tcpBeLiberal: yes, udpTimeout: 3s}
logging: {flushFrequency: 1000000000, vmodule: [{filePattern: "a*", verbosity: 3}], format: text, verbosity: 4}
nodePortAddresses: [10.80.0.0/24, "fd80::/64"]
oomScoreAdj: -5
)");
  REQUIRE(yaml);
  CHECK(yaml->qps == 2.5);
  CHECK(yaml->burst == 20);
  CHECK(yaml->conntrack.max_per_core == 16);
  CHECK(yaml->conntrack.tcp_be_liberal);
  CHECK(yaml->conntrack.udp_timeout.count() == 3);
  CHECK(yaml->vmodule == std::vector<VerbosityOfFiles>{{"a*", 3}});
  CHECK(yaml->verbosity == 4);
  CHECK(yaml->node_port_addresses.ranges.size() == 2);
  CHECK(yaml->oom_score_adj == -5);

  const auto json = load_text(
      {{"--hostname-override=n"}},
      "{\n\t\"apiVersion\": \"kubeproxy.config.k8s.io/v1alpha1\",\n\t\"kind\": "
      "\"KubeProxyConfiguration\",\n\t\"conntrack\": {\"min\": 3, \"udpTimeout\": \"3s\"},\n\t"
      "\"clusterCIDR\": \"10.64.0.0\\/14\"\n}\n");
  CHECK(error_of(json).empty());
  REQUIRE(json);
  CHECK(json->conntrack.min == 3);
  CHECK(json->cluster_cidrs.size() == 1);
}

TEST_CASE("unknown and duplicate fields are warnings that name them, and the rest counts") {
  const auto got = load_fields(R"(clusterCidr: 10.0.0.0/8
conntrack: {min: 1, perCore: 7, min: 2}
kubeShunt: {magic: true}
logging: {vmodule: [{filePattern: a, verbosity: 0, colour: red}]}
oomScoreAdj: 3
oomScoreAdj: 4
featureGates: {A: true, A: false}
)");
  REQUIRE(got);
  CHECK(warned(*got, "unknown field \"clusterCidr\""));
  CHECK(warned(*got, "unknown field \"conntrack.perCore\""));
  CHECK(warned(*got, "unknown field \"kubeShunt.magic\""));
  CHECK(warned(*got, "colour"));
  CHECK(warned(*got, "duplicate field \"conntrack.min\""));
  CHECK(warned(*got, "duplicate field \"oomScoreAdj\""));
  CHECK(warned(*got, "featureGates.A"));
  CHECK(got->conntrack.min == 2);
  CHECK(got->oom_score_adj == 4);
}

TEST_CASE("a value of another type is refused by the name of its field") {
  const struct {
    const char* fields;
    const char* named;
  } cases[] = {
      {"conntrack: {maxPerCore: many}", "conntrack.maxPerCore"},
      {"conntrack: {maxPerCore: \"5\"}", "conntrack.maxPerCore"},
      {"conntrack: {maxPerCore: 1.5}", "conntrack.maxPerCore"},
      {"conntrack: {min: 3000000000}", "conntrack.min"},
      {"conntrack: {udpTimeout: 30}", "conntrack.udpTimeout"},
      {"conntrack: {udpTimeout: soon}", "conntrack.udpTimeout"},
      {"conntrack: 5", "conntrack"},
      {"conntrack: [1]", "conntrack"},
      {"hostnameOverride: 12345", "hostnameOverride"},
      {"hostnameOverride: true", "hostnameOverride"},
      {"hostnameOverride: [a]", "hostnameOverride"},
      {"enableProfiling: \"true\"", "enableProfiling"},
      {"nodePortAddresses: primary", "nodePortAddresses"},
      {"nodePortAddresses: [1]", "nodePortAddresses"},
      {"featureGates: {A: maybe}", "featureGates"},
      {"featureGates: [A]", "featureGates"},
      {"logging: {vmodule: a=2}", "logging.vmodule"},
      {"logging: {vmodule: [{filePattern: a, verbosity: -1}]}", "logging.vmodule"},
      {"logging: {verbosity: -1}", "logging.verbosity"},
      {"logging: {options: {text: {infoBufferSize: much}}}", "logging.options.text.infoBufferSize"},
      {"clientConnection: {qps: fast}", "clientConnection.qps"},
      {"? [a]\n: b", "name of a field"},
  };
  for (const auto& c : cases) {
    DYNAMIC_SECTION(c.fields) { CHECK(has(error_of(load_fields(c.fields)), c.named)); }
  }
}

TEST_CASE("a file that is no KubeProxyConfiguration is refused") {
  for (const char* text :
       {"",
        "a: [",
        "kind: Service\napiVersion: v1\n",
        "- 1\n",
        "kind: KubeProxyConfiguration\n",
        "kind: KubeProxyConfiguration\napiVersion: kubeproxy.config.k8s.io/v1\n",
        "kind: [KubeProxyConfiguration]\napiVersion: kubeproxy.config.k8s.io/v1alpha1\n",
        "\x01\xff"}) {
    CHECK_FALSE(parse_config_file(text));
  }
  CHECK_FALSE(parse_config_file(with_head("#" + std::string(kLongestFile, 'x'))));
  CHECK(has(error_of(parse_config_file("a: b\nc: [\n")), "line"));
}

TEST_CASE("words that only look like numbers are text") {
  for (const char* name : {"inf", "nan", "infinity", "1a", "10.0.0.1", "2e", "~x"}) {
    const auto got = load_text({}, with_head(std::string("hostnameOverride: ") + name + "\n"));
    REQUIRE(got);
    CHECK(got->node_name == name);
  }
}

TEST_CASE("a file nested without end, or that names itself, ends in an error or a warning") {
  CHECK_FALSE(parse_config_file(std::string(100'000, '[')));
  const auto own = load_fields("kubeShunt: &own {kubeShunt: *own}\n");
  CHECK((own || !own.error().what.empty()));
}

TEST_CASE("a zero is the default where Go has no pointer, and is meant where it has one") {
  const auto got = load_fields(R"(clientConnection: {qps: 0, burst: 0, contentType: ""}
conntrack: {maxPerCore: 0, min: null, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: null}
iptables: {syncPeriod: 0s, minSyncPeriod: 0s, masqueradeBit: 0, localhostNodePorts: null}
oomScoreAdj: 0
configSyncPeriod: 0s
healthzBindAddress: ""
metricsBindAddress: ""
bindAddress: ""
logging: {format: "", flushFrequency: 0}
kubeShunt: {watchStallTimeout: 0s, serviceMetricsLimit: 0, readyzMaxContactAge: 0s}
)");
  REQUIRE(got);
  CHECK(got->warnings.empty());
  CHECK(got->qps == 5);
  CHECK(got->burst == 10);
  CHECK(got->content_type == "application/vnd.kubernetes.protobuf");
  CHECK(got->conntrack.max_per_core == 0);
  CHECK(got->conntrack.min == 131'072);
  CHECK(got->conntrack.tcp_established_timeout.count() == 0);
  CHECK(got->conntrack.tcp_close_wait_timeout == std::chrono::hours(1));
  CHECK(got->sync_period == Millis{30'000});
  CHECK(got->min_sync_period.count() == 0);
  CHECK(got->masquerade_bit == 0);
  CHECK(got->localhost_node_ports);
  CHECK(got->oom_score_adj == 0);
  CHECK(got->config_sync_period == std::chrono::minutes(15));
  CHECK(net::to_string(got->healthz.value()) == "0.0.0.0:10256");
  CHECK(net::to_string(got->metrics.value()) == "127.0.0.1:10249");
  CHECK(got->log_format == log::Format::Logfmt);
  CHECK(got->watch_stall_timeout == Millis{120'000});
  CHECK(got->service_metrics_limit == 0);
  CHECK(got->readyz_max_contact_age == Millis{600'000});
}

TEST_CASE("servers listen where they are told, with kube-proxy's ports, and follow the family") {
  const auto v6 = load_fields("bindAddress: \"fd80::10\"\n");
  REQUIRE(v6);
  CHECK(net::to_string(v6->healthz.value()) == "[::]:10256");
  CHECK(net::to_string(v6->metrics.value()) == "[::1]:10249");
  const auto told =
      load_fields("healthzBindAddress: \"fd80::1\"\nmetricsBindAddress: 10.0.0.1:99\n");
  REQUIRE(told);
  CHECK(net::to_string(told->healthz.value()) == "[fd80::1]:10256");
  CHECK(net::to_string(told->metrics.value()) == "10.0.0.1:99");
}

TEST_CASE("what does nothing is warned about, when it is not the default") {
  const auto got = load_fields(R"(clientConnection: {qps: 50}
ipvs: {scheduler: lc, strictARP: false}
winkernel: {enableDSR: true}
portRange: 1-2
windowsRunAsService: false
configSyncPeriod: 15m
showHiddenMetricsForVersion: "1.35"
)");
  REQUIRE(got);
  for (const char* field :
       {"clientConnection.qps",
        "ipvs.scheduler",
        "winkernel.enableDSR",
        "portRange",
        "showHiddenMetricsForVersion"}) {
    CHECK(warned(*got, field));
  }
  CHECK(got->warnings.size() == 5);
}

TEST_CASE("kubeadm's files work as they are: its defaults, and nothing to say about them") {
  const std::string path =
      std::string(SHUNT_SOURCE_DIR) + "/pkg/config/testdata/kubeadm/config.conf";
  const auto got = load({{"--config=" + path, "--hostname-override=node1"}});
  CHECK(error_of(got).empty());
  REQUIRE(got);
  CHECK(got->warnings.empty());
  CHECK(got->mode == Mode::Auto);
  CHECK(got->kubeconfig == "/var/lib/kube-proxy/kubeconfig.conf");
  CHECK(net::to_string(got->cluster_cidrs.at(0)) == "10.244.0.0/16");
  // All else is what a file without a word has.
  const auto bare = load_fields(
      "clientConnection: {kubeconfig: /var/lib/kube-proxy/kubeconfig.conf}\n"
      "clusterCIDR: 10.244.0.0/16\n",
      {"--hostname-override=node1"});
  REQUIRE(bare);
  for (const FieldChange& change : differences(*bare, *got)) {
    CHECK((change.field == "--config" || change.field == "hostnameOverride"));
  }
  CHECK(got->node_port_addresses.kind == NodePortAddresses::Kind::All);
  CHECK(got->localhost_node_ports);
  CHECK(got->sync_period == Millis{30'000});
  CHECK(got->min_sync_period.count() == 0);
  CHECK(got->conntrack.max_per_core == 32'768);
  CHECK(got->oom_score_adj == -999);
  CHECK(got->healthz);
  CHECK(got->metrics);
}

}  // namespace
}  // namespace shunt::config
