#include "config/fields.h"

#include <algorithm>

namespace shunt::config {
namespace {

using enum Type;
using enum Zero;
using enum FlagRule;
using enum Effect;

// clang-format off
constexpr Field kFields[] = {
  {"featureGates", "feature-gates", Gates, "", Itself, WithoutFile, Honoured, "AllowServiceExternalIPs=false turns externalIPs off; other gates do nothing here. Setting a locked gate to the other value is an error, a name we do not know a warning"},
  {"clientConnection.kubeconfig", "kubeconfig", String, "", Itself, WithoutFile, Honoured, "kubeconfig file; without it and --master: in-cluster. The flag also counts when the file's field is empty"},
  {"clientConnection.acceptContentTypes", "", String, "", Itself, WithoutFile, Honoured, "the Accept header of every request, verbatim"},
  {"clientConnection.contentType", "kube-api-content-type", String, "application/vnd.kubernetes.protobuf", Default, WithoutFile, Honoured, "how objects are asked for; or application/json"},
  {"clientConnection.qps", "kube-api-qps", Float, "5", Default, WithoutFile, Warned, "we hold a few watches open and back off by ourselves: nothing to limit"},
  {"clientConnection.burst", "kube-api-burst", Int, "10", Default, WithoutFile, Warned, "as qps"},
  {"logging.format", "logging-format", String, "text", Default, Always, Honoured, "text (logfmt lines) or json (one object a line)"},
  {"logging.flushFrequency", "log-flush-frequency", Duration, "5s", Default, Always, Warned, "every line is written at once"},
  {"logging.verbosity", "v", Unsigned, "0", Itself, Always, Honoured, "from 2 on every change is logged"},
  {"logging.vmodule", "vmodule", Modules, "", Itself, Always, Warned, "verbosity by source file is not offered; those of flag and file are put together"},
  {"logging.options.text.splitStream", "log-text-split-stream", Bool, "false", Itself, Always, Warned, "all lines go to stderr"},
  {"logging.options.text.infoBufferSize", "log-text-info-buffer-size", Count, "0", Itself, Always, Warned, "nothing is buffered"},
  {"logging.options.json.splitStream", "log-json-split-stream", Bool, "false", Itself, Always, Warned, "all lines go to stderr"},
  {"logging.options.json.infoBufferSize", "log-json-info-buffer-size", Count, "0", Itself, Always, Warned, "nothing is buffered"},
  {"hostnameOverride", "hostname-override", String, "", Itself, Always, Honoured, "name of the Node; else the name of the host. In lower case"},
  {"bindAddress", "bind-address", String, "0.0.0.0", Default, WithoutFile, Honoured, "the node's own address, when it is not the Node's; nothing is bound to it"},
  {"healthzBindAddress", "healthz-bind-address", String, "", Default, WithoutFile, Honoured, "ip[:port] of /healthz and /livez; without a word 0.0.0.0:10256, [::]:10256 when bindAddress is IPv6"},
  {"metricsBindAddress", "metrics-bind-address", String, "", Default, WithoutFile, Honoured, "ip[:port] of /metrics and the like; without a word 127.0.0.1:10249, [::1]:10249 when bindAddress is IPv6"},
  {"bindAddressHardFail", "bind-address-hard-fail", Bool, "false", Itself, WithoutFile, Honoured, "an address that cannot be bound ends the daemon; else it is tried again"},
  {"enableProfiling", "profiling", Bool, "false", Itself, WithoutFile, Honoured, "/debug on the metrics address, as far as there is any"},
  {"showHiddenMetricsForVersion", "show-hidden-metrics-for-version", String, "", Itself, WithoutFile, Warned, "we hide no metrics; must be empty or the previous minor version, 1.35"},
  {"mode", "proxy-mode", String, "", Itself, WithoutFile, Honoured, "nftables, ipvs or iptables. Empty: nftables with the settings of an iptables-mode user, or iptables where the kernel has no nf_tables"},
  {"iptables.masqueradeBit", "iptables-masquerade-bit", Int, "14", Itself, WithoutFile, Honoured, "bit of the packet mark for masquerading; with an empty mode, with iptables and with ipvs"},
  {"iptables.masqueradeAll", "masquerade-all", Bool, "false", Itself, WithoutFile, Honoured, "masquerade all traffic to ClusterIPs; with an empty mode, with iptables and with ipvs"},
  {"iptables.localhostNodePorts", "iptables-localhost-nodeports", Bool, "true", Itself, WithoutFile, Honoured, "NodePorts on 127.0.0.1, when nodePortAddresses reach it: with iptables by route_localnet and kube-proxy's rules, with an empty mode by a relay that needs neither"},
  {"iptables.syncPeriod", "iptables-sync-period", Duration, "30s", Default, WithoutFile, Honoured, "how often what the kernel refused is tried again, and in mode iptables all rules are compared; with an empty mode and with iptables"},
  {"iptables.minSyncPeriod", "iptables-min-sync-period", Duration, "0s", Itself, WithoutFile, Honoured, "shortest time between two runs; with an empty mode and with iptables. kube-proxy's default is 1s; here a run costs what changed"},
  {"ipvs.syncPeriod", "ipvs-sync-period", Duration, "30s", Default, WithoutFile, Honoured, "how often what the kernel refused is tried again; with mode ipvs"},
  {"ipvs.minSyncPeriod", "ipvs-min-sync-period", Duration, "0s", Itself, WithoutFile, Honoured, "shortest time between two runs; with mode ipvs"},
  {"ipvs.scheduler", "ipvs-scheduler", String, "rr", Default, WithoutFile, Honoured, "how IPVS chooses an endpoint: rr, wrr, lc, wlc, sh, mh, sed, nq, dh, lblc, lblcr or another one that the kernel has"},
  {"ipvs.excludeCIDRs", "ipvs-exclude-cidrs", List, "", Itself, WithoutFile, Honoured, "virtual servers at these addresses that are not ours stay as they are; in other modes, too, which remove what an IPVS mode left"},
  {"ipvs.strictARP", "ipvs-strict-arp", Bool, "false", Itself, WithoutFile, Honoured, "sets net.ipv4.conf.all arp_ignore=1 and arp_announce=2. Addresses of Services answer no ARP here without it, either"},
  {"ipvs.tcpTimeout", "ipvs-tcp-timeout", Duration, "0s", Itself, WithoutFile, Honoured, "how long IPVS keeps idle TCP connections, in whole seconds; 0 leaves it"},
  {"ipvs.tcpFinTimeout", "ipvs-tcpfin-timeout", Duration, "0s", Itself, WithoutFile, Honoured, "how long IPVS keeps TCP connections after a FIN; 0 leaves it"},
  {"ipvs.udpTimeout", "ipvs-udp-timeout", Duration, "0s", Itself, WithoutFile, Honoured, "how long IPVS keeps UDP flows; 0 leaves it"},
  {"nftables.masqueradeBit", "", Int, "14", Itself, WithoutFile, Honoured, "bit of the packet mark for masquerading; with mode nftables"},
  {"nftables.masqueradeAll", "masquerade-all", Bool, "false", Itself, WithoutFile, Honoured, "masquerade all traffic to ClusterIPs; with mode nftables"},
  {"nftables.syncPeriod", "iptables-sync-period", Duration, "30s", Default, WithoutFile, Honoured, "how often what the kernel refused is tried again; with mode nftables"},
  {"nftables.minSyncPeriod", "iptables-min-sync-period", Duration, "0s", Itself, WithoutFile, Honoured, "shortest time between two runs; with mode nftables. kube-proxy's default is 1s; here a run costs what changed"},
  {"winkernel.networkName", "", String, "", Itself, WithoutFile, Warned, "Windows only"},
  {"winkernel.sourceVip", "", String, "", Itself, WithoutFile, Warned, "Windows only"},
  {"winkernel.enableDSR", "", Bool, "false", Itself, WithoutFile, Warned, "Windows only"},
  {"winkernel.rootHnsEndpointName", "", String, "", Itself, WithoutFile, Warned, "Windows only"},
  {"winkernel.forwardHealthCheckVip", "", Bool, "false", Itself, WithoutFile, Warned, "Windows only"},
  {"detectLocalMode", "detect-local-mode", String, "ClusterCIDR", Default, WithoutFile, Honoured, "how traffic of local pods is told: ClusterCIDR, NodeCIDR, BridgeInterface, InterfaceNamePrefix"},
  {"detectLocal.bridgeInterface", "pod-bridge-interface", String, "", Itself, WithoutFile, Honoured, "the bridge of BridgeInterface"},
  {"detectLocal.interfaceNamePrefix", "pod-interface-name-prefix", String, "", Itself, WithoutFile, Honoured, "the prefix of InterfaceNamePrefix"},
  {"clusterCIDR", "cluster-cidr", String, "", Itself, WithoutFile, Honoured, "ranges of the pods, one of each family, with a comma between"},
  {"nodePortAddresses", "nodeport-addresses", List, "", Itself, WithoutFile, Honoured, "ranges of the node's addresses that serve NodePorts, or the word primary. Without any: primary with mode nftables, all local addresses with an empty mode, with iptables and with ipvs"},
  {"oomScoreAdj", "oom-score-adj", Int, "-999", Itself, WithoutFile, Honoured, "how unlikely the kernel ends the daemon when memory is short; -1000 to 1000"},
  {"conntrack.maxPerCore", "conntrack-max-per-core", Int, "32768", Itself, WithoutFile, Honoured, "connections tracked per CPU; 0 leaves the limit and ignores conntrack.min"},
  {"conntrack.min", "conntrack-min", Int, "131072", Itself, WithoutFile, Honoured, "connections tracked at least"},
  {"conntrack.tcpEstablishedTimeout", "conntrack-tcp-timeout-established", Duration, "24h", Itself, WithoutFile, Honoured, "how long idle TCP connections are tracked; 0 leaves it"},
  {"conntrack.tcpCloseWaitTimeout", "conntrack-tcp-timeout-close-wait", Duration, "1h", Itself, WithoutFile, Honoured, "how long half-closed TCP connections are tracked; 0 leaves it"},
  {"conntrack.tcpBeLiberal", "conntrack-tcp-be-liberal", Bool, "false", Itself, WithoutFile, Honoured, "let segments outside the window pass for tracked"},
  {"conntrack.udpTimeout", "conntrack-udp-timeout", Duration, "0s", Itself, WithoutFile, Honoured, "how long one-way UDP flows are tracked; 0 leaves it"},
  {"conntrack.udpStreamTimeout", "conntrack-udp-timeout-stream", Duration, "0s", Itself, WithoutFile, Honoured, "how long answered UDP flows are tracked; 0 leaves it"},
  {"configSyncPeriod", "config-sync-period", Duration, "15m", Default, WithoutFile, Warned, "a resync of caches in memory, of which there are none here"},
  {"portRange", "", String, "", Itself, WithoutFile, Warned, "without effect in kube-proxy, too"},
  {"windowsRunAsService", "", Bool, "false", Itself, WithoutFile, Warned, "Windows only"},

  {"kubeShunt.iptablesVariant", "iptables-variant", String, "auto", Itself, Always, Honoured, "which iptables mode iptables uses: nft, legacy, or auto for that of the kubelet and most others on the host"},
  {"kubeShunt.localhostNodePorts", "", Bool, "", Itself, Always, Honoured, "NodePorts on localhost, by a relay; given, it counts in every mode, and with iptables no route_localnet is used. Unset: as iptables.localhostNodePorts with an empty mode, else false"},
  {"kubeShunt.statusSocket", "status-socket", String, "", Itself, Always, Honoured, "Unix socket that tells the state of the daemon as JSON"},
  {"kubeShunt.watchStallTimeout", "watch-stall-timeout", Duration, "2m", Default, Always, Honoured, "a watch from which nothing came for this long is replaced"},
  {"kubeShunt.manifests", "manifests", String, "", Itself, Always, Honoured, "directory of manifests to serve instead of an API server's objects"},
  {"kubeShunt.snapshot", "snapshot", String, "", Itself, Always, Honoured, "file of the objects last known, for a start without the API server"},
  {"kubeShunt.serviceMetricsLimit", "service-metrics-limit", Int, "1000", Itself, Always, Honoured, "most Services with metrics of their own; 0 for none"},
  {"kubeShunt.readyzMaxContactAge", "", Duration, "10m", Default, Always, Honoured, "/readyz fails when the API server was silent for longer"},

  {"--config", "config", String, "", Itself, Always, Honoured, "KubeProxyConfiguration file; flags that it can say are then ignored"},
  {"--master", "master", String, "", Itself, Always, Honoured, "URL of the API server; overrides the kubeconfig's"},
  {"--write-config-to", "write-config-to", String, "", Itself, Always, Honoured, "write the configuration in effect to this file and exit"},
  {"--check-config", "check-config", Bool, "false", Itself, Always, Honoured, "check the configuration, print what is in effect and exit: 0, or 2 when it is wrong"},
  {"--cleanup", "cleanup", Bool, "false", Itself, Always, Honoured, "remove what kube-shunt put into the kernel and exit"},
  {"--cleanup-kube-proxy", "cleanup-kube-proxy", Bool, "false", Itself, Always, Honoured, "remove what kube-proxy left in the kernel and exit; connections that its IPVS balances end (a daemon in nftables mode lets them end by themselves)"},
  {"--init-only", "init-only", Bool, "false", Itself, Always, Honoured, "set what needs privileges (connection tracking limits, IPVS) and exit; the daemon then runs with less"},
  {"--version", "version", Bool, "false", Itself, Always, Honoured, "print the version and exit"},
  {"--help", "help", Bool, "false", Itself, Always, Honoured, "print this and exit"},
  {"--healthz-port", "healthz-port", Int, "10256", Itself, WithoutFile, Honoured, "deprecated: 0 turns healthzBindAddress off; else the port of one without, which has no effect on the default"},
  {"--metrics-port", "metrics-port", Int, "10249", Itself, WithoutFile, Honoured, "deprecated: the port of a metricsBindAddress without; 0 is refused, as by kube-proxy"},
  {"--machine-id-file", "machine-id-file", String, "/etc/machine-id,/var/lib/dbus/machine-id", Itself, Always, Warned, "a flag of a library of kube-proxy's"},
  {"--boot-id-file", "boot-id-file", String, "/proc/sys/kernel/random/boot_id", Itself, Always, Warned, "a flag of a library of kube-proxy's"},
};
// clang-format on

const char* name_of(Type type) {
  switch (type) {
    case String:
      return "text";
    case Bool:
      return "bool";
    case Int:
    case Unsigned:
      return "int";
    case Float:
      return "float";
    case Duration:
      return "duration";
    case Count:
      return "quantity";
    case List:
      return "list";
    case Gates:
      return "map";
    case Modules:
      return "patterns";
  }
  return "?";
}

std::string code(std::string_view text) {
  return text.empty() ? std::string() : "`" + std::string(text) + "`";
}

void append_row(std::string& page, const Field& field) {
  for (const std::string& cell :
       {field.in_file() ? code(field.path) : std::string(),
        field.flag.empty() ? std::string() : code("--" + std::string(field.flag)),
        std::string(name_of(field.type)),
        code(field.fallback),
        std::string(field.effect == Honoured ? "honoured" : "warned"),
        std::string(field.note)}) {
    page += cell.empty() ? "|" : "| ";
    page += cell;
    page += ' ';
  }
  page += "|\n";
}

}  // namespace

std::span<const Field> fields() { return kFields; }

const Field* find_path(std::string_view path) {
  const auto* found = std::ranges::find(kFields, path, &Field::path);
  return found == std::end(kFields) ? nullptr : found;
}

const Field* find_flag(std::string_view name) {
  const auto* found = std::ranges::find(kFields, name, &Field::flag);
  return found == std::end(kFields) || name.empty() ? nullptr : found;
}

bool is_section(std::string_view path) {
  return std::ranges::any_of(kFields, [&](const Field& field) {
    return field.path.size() > path.size() && field.path.starts_with(path) &&
           field.path[path.size()] == '.';
  });
}

std::string fields_page() {
  std::string page =
      "# Fields and flags\n\n"
      "Written from the table in `fields.cpp`, by `SHUNT_WRITE_FIELDS=1 "
      "build/dev/bin/test_config`; "
      "a test fails when it is\n"
      "out of date. *honoured*: it does what it does in kube-proxy, or what the note says. "
      "*warned*: "
      "accepted, does nothing,\n"
      "and a warning says so when it is not the default. A row without a field is a flag alone; a "
      "row without a flag can only\n"
      "be said in the file.\n\n"
      "| field | flag | type | default | here | note |\n"
      "| --- | --- | --- | --- | --- | --- |\n";
  for (const Field& field : kFields) {
    append_row(page, field);
  }
  return page;
}

std::string help() {
  std::string text =
      "Makes Kubernetes Services work on this node, through nftables, IPVS or iptables.\n\n"
      "Usage: kube-shunt [flags]\n\n";
  for (const Field& field : kFields) {
    if (field.flag.empty() || find_flag(field.flag) != &field) {
      continue;
    }
    text += field.flag.size() == 1 ? "  -" : "  --";
    text += field.flag;
    text += field.flag == "v" ? ", --v" : field.flag == "help" ? ", -h" : "";
    if (field.type != Bool) {
      text += ' ';
      text += name_of(field.type);
    }
    text += field.effect == Warned ? "\n      no effect here: " : "\n      ";
    text += field.note;
    if (!field.fallback.empty() && field.fallback != "false") {
      text += " (default ";
      text += field.fallback;
      text += ')';
    }
    text += '\n';
  }
  return text;
}

}  // namespace shunt::config
