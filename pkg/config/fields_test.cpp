#include "config/fields.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "config/testing.h"

namespace shunt::config {
namespace {

TEST_CASE("FIELDS.md is what the table says") {
  const std::string path = std::string(SHUNT_SOURCE_DIR) + "/pkg/config/FIELDS.md";
  if (std::getenv("SHUNT_WRITE_FIELDS") != nullptr) {
    std::ofstream(path) << fields_page();
  }
  INFO("write it anew with SHUNT_WRITE_FIELDS=1");
  CHECK(testing::content_of(path) == fields_page());
}

TEST_CASE("every row of the table has a path of its own, a default that can be read, and a note") {
  std::set<std::string_view> paths;
  for (const Field& field : fields()) {
    INFO(field.path);
    CHECK(paths.insert(field.path).second);
    CHECK(!field.note.empty());
    CHECK((field.in_file() || field.path.substr(2) == field.flag));
    const bool unset = field.type == Type::Bool && field.fallback.empty();
    CHECK((unset || value_of(field.type, field.fallback)));
    const Field* first = find_flag(field.flag);
    CHECK((field.flag.empty() || first->type == field.type));
  }
  CHECK(is_section("conntrack"));
  CHECK(is_section("logging.options.text"));
  CHECK_FALSE(is_section("mode"));
  CHECK_FALSE(is_section("conntrac"));
  CHECK_FALSE(is_section(""));
}

// spec/config.md §1 and §3 in short: what kube-proxy 1.36 knows.
TEST_CASE("no field and no flag of kube-proxy is missing") {
  for (const char* path :
       {"featureGates",
        "clientConnection.kubeconfig",
        "clientConnection.acceptContentTypes",
        "clientConnection.contentType",
        "clientConnection.qps",
        "clientConnection.burst",
        "logging.format",
        "logging.flushFrequency",
        "logging.verbosity",
        "logging.vmodule",
        "logging.options.text.splitStream",
        "logging.options.text.infoBufferSize",
        "logging.options.json.splitStream",
        "logging.options.json.infoBufferSize",
        "hostnameOverride",
        "bindAddress",
        "healthzBindAddress",
        "metricsBindAddress",
        "bindAddressHardFail",
        "enableProfiling",
        "showHiddenMetricsForVersion",
        "mode",
        "iptables.masqueradeBit",
        "iptables.masqueradeAll",
        "iptables.localhostNodePorts",
        "iptables.syncPeriod",
        "iptables.minSyncPeriod",
        "ipvs.syncPeriod",
        "ipvs.minSyncPeriod",
        "ipvs.scheduler",
        "ipvs.excludeCIDRs",
        "ipvs.strictARP",
        "ipvs.tcpTimeout",
        "ipvs.tcpFinTimeout",
        "ipvs.udpTimeout",
        "nftables.masqueradeBit",
        "nftables.masqueradeAll",
        "nftables.syncPeriod",
        "nftables.minSyncPeriod",
        "winkernel.networkName",
        "winkernel.sourceVip",
        "winkernel.enableDSR",
        "winkernel.rootHnsEndpointName",
        "winkernel.forwardHealthCheckVip",
        "detectLocalMode",
        "detectLocal.bridgeInterface",
        "detectLocal.interfaceNamePrefix",
        "clusterCIDR",
        "nodePortAddresses",
        "oomScoreAdj",
        "conntrack.maxPerCore",
        "conntrack.min",
        "conntrack.tcpEstablishedTimeout",
        "conntrack.tcpCloseWaitTimeout",
        "conntrack.tcpBeLiberal",
        "conntrack.udpTimeout",
        "conntrack.udpStreamTimeout",
        "configSyncPeriod",
        "portRange",
        "windowsRunAsService"}) {
    INFO(path);
    const Field* field = find_path(path);
    REQUIRE(field != nullptr);
    CHECK(field->in_file());
  }
  for (const char* flag :
       {"bind-address",
        "bind-address-hard-fail",
        "boot-id-file",
        "cleanup",
        "cluster-cidr",
        "config",
        "config-sync-period",
        "conntrack-max-per-core",
        "conntrack-min",
        "conntrack-tcp-be-liberal",
        "conntrack-tcp-timeout-close-wait",
        "conntrack-tcp-timeout-established",
        "conntrack-udp-timeout",
        "conntrack-udp-timeout-stream",
        "detect-local-mode",
        "feature-gates",
        "healthz-bind-address",
        "healthz-port",
        "help",
        "hostname-override",
        "init-only",
        "iptables-localhost-nodeports",
        "iptables-masquerade-bit",
        "iptables-min-sync-period",
        "iptables-sync-period",
        "ipvs-exclude-cidrs",
        "ipvs-min-sync-period",
        "ipvs-scheduler",
        "ipvs-strict-arp",
        "ipvs-sync-period",
        "ipvs-tcp-timeout",
        "ipvs-tcpfin-timeout",
        "ipvs-udp-timeout",
        "kube-api-burst",
        "kube-api-content-type",
        "kube-api-qps",
        "kubeconfig",
        "log-flush-frequency",
        "log-json-info-buffer-size",
        "log-json-split-stream",
        "log-text-info-buffer-size",
        "log-text-split-stream",
        "logging-format",
        "machine-id-file",
        "masquerade-all",
        "master",
        "metrics-bind-address",
        "metrics-port",
        "nodeport-addresses",
        "oom-score-adj",
        "pod-bridge-interface",
        "pod-interface-name-prefix",
        "profiling",
        "proxy-mode",
        "show-hidden-metrics-for-version",
        "v",
        "version",
        "vmodule",
        "write-config-to"}) {
    INFO(flag);
    CHECK(find_flag(flag) != nullptr);
    CHECK(testing::has(help(), flag));
  }
}

}  // namespace
}  // namespace shunt::config
