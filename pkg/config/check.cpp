#include "config/check.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "base/trimmed.h"
#include "config/assemble.h"
#include "config/feature_gates.h"

namespace shunt::config {
namespace {

constexpr char kPreviousMinor[] = "1.35";
constexpr std::size_t kLongestInterfaceName = 15;
constexpr std::size_t kLongestScheduler = 15;  // IP_VS_SCHEDNAME_MAXLEN, with its end

class Checker {
 public:
  explicit Checker(const Settings& settings) : settings_(settings) {}
  Checked run();

 private:
  void client();
  void node_name();
  void logging();
  void gates();
  void mode();
  void masquerading();
  void periods();
  void local_traffic();
  void cluster_cidrs();
  void node_ports();
  void addresses();
  void conntrack();
  void ipvs();
  void own();
  void what_to_do();

  void wrong(std::string_view path, std::string_view what) {
    out_.violations.push_back(std::string(path) + ": " + std::string(what));
  }
  const std::string& text(std::string_view path) const { return get<std::string>(settings_, path); }
  bool yes(std::string_view path) const { return get<bool>(settings_, path); }
  std::int32_t number(std::string_view path, std::int64_t least, std::int64_t most);
  // Rounded down.
  template <typename Unit>
  Unit duration(std::string_view path, bool zero_too) {
    const Nanos value = get<Nanos>(settings_, path);
    if (value.count() < 0 || (value.count() == 0 && !zero_too)) {
      wrong(path, zero_too ? "must not be negative" : "must be more than 0");
    }
    return std::chrono::floor<Unit>(value);
  }
  std::string header(std::string_view path);
  std::string interface_name(std::string_view path, DetectLocalMode mode);
  std::optional<net::SocketAddress> server(std::string_view path);

  const Settings& settings_;
  Checked out_;
  Options& o_ = out_.options;
};

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

std::int32_t Checker::number(std::string_view path, std::int64_t least, std::int64_t most) {
  const auto value = get<std::int64_t>(settings_, path);
  if (value < least || value > most) {
    wrong(
        path,
        most == kMost ? "must be " + std::to_string(least) + " or more"
                      : "must be " + std::to_string(least) + " to " + std::to_string(most));
  }
  return static_cast<std::int32_t>(value);
}

// It goes into requests as it is.
std::string Checker::header(std::string_view path) {
  if (std::ranges::any_of(text(path), [](char c) { return c < ' ' || c > '~'; })) {
    wrong(path, "has characters that no header may have");
  }
  return text(path);
}

void Checker::client() {
  o_.kubeconfig = text("clientConnection.kubeconfig");
  o_.master = text("--master");
  o_.content_type = header("clientConnection.contentType");
  o_.accept_content_types = header("clientConnection.acceptContentTypes");
  o_.qps = get<double>(settings_, "clientConnection.qps");
  o_.burst = number("clientConnection.burst", 0, kMost);
}

// spec/config.md §5.
void Checker::node_name() {
  std::string name = text("hostnameOverride");
  if (name.empty()) {
    char buffer[HOST_NAME_MAX + 1] = {};
    if (::gethostname(buffer, sizeof buffer - 1) == 0) {
      name = buffer;
    }
  }
  name = trimmed(name, " \t\r\n\v\f");
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  if (name.empty()) {
    wrong("hostnameOverride", "the node's name is empty");
  }
  o_.node_name = name;
}

void Checker::logging() {
  const std::string& format = text("logging.format");
  if (format != "text" && format != "json") {
    wrong("logging.format", "must be text or json, not " + quoted(format));
  }
  o_.log_format = format == "json" ? log::Format::Json : log::Format::Logfmt;
  o_.verbosity = get<std::int64_t>(settings_, "logging.verbosity");
  if (o_.verbosity > kMost) {
    wrong("logging.verbosity", "must be at most " + std::to_string(kMost));
  }
  o_.vmodule = get<std::vector<VerbosityOfFiles>>(settings_, "logging.vmodule");
  if (!o_.vmodule.empty() && format == "json") {
    wrong("logging.vmodule", "needs the format text");
  }
  for (const VerbosityOfFiles& module : o_.vmodule) {
    if (module.pattern.empty() || module.pattern.find_first_of("=,") != std::string::npos) {
      wrong("logging.vmodule", quoted(module.pattern) + " is not a pattern of files");
    }
  }
  if (enabled(get<Gates>(settings_, "featureGates"), kLogAlphaGate)) {
    return;
  }
  for (const char* path :
       {"logging.options.text.splitStream", "logging.options.json.splitStream"}) {
    if (yes(path)) {
      wrong(path, "needs the feature gate LoggingAlphaOptions");
    }
  }
  for (const char* path :
       {"logging.options.text.infoBufferSize", "logging.options.json.infoBufferSize"}) {
    if (text(path).find_first_of("123456789") != std::string::npos) {
      wrong(path, "needs the feature gate LoggingAlphaOptions");
    }
  }
}

void Checker::gates() {
  const auto& gates = get<Gates>(settings_, "featureGates");
  GateFindings findings = look_at(gates);
  out_.violations.insert(
      out_.violations.end(), findings.violations.begin(), findings.violations.end());
  out_.warnings = std::move(findings.warnings);
  o_.allow_external_ips = enabled(gates, kExternalIpsGate);
}

void Checker::mode() {
  const std::string& mode = text("mode");
  o_.mode = mode_of(mode);
  if (o_.mode == Mode::Auto && !mode.empty()) {
    wrong("mode", quoted(mode) + " is not one of iptables, ipvs, nftables");
  }
  const std::string& version = text("showHiddenMetricsForVersion");
  if (!version.empty() && version != kPreviousMinor) {
    wrong("showHiddenMetricsForVersion", "must be empty or 1.35, the version before");
  }
}

void Checker::masquerading() {
  const std::int32_t iptables = number("iptables.masqueradeBit", 0, 31);
  const bool nftables = o_.mode == Mode::Nftables;
  o_.masquerade_bit =
      static_cast<std::uint32_t>(nftables ? number("nftables.masqueradeBit", 0, 31) : iptables);
  o_.masquerade_all = yes(nftables ? "nftables.masqueradeAll" : "iptables.masqueradeAll");
}

void Checker::periods() {
  const std::string section(section_of(o_.mode));
  o_.sync_period = duration<Millis>(section + ".syncPeriod", false);
  o_.min_sync_period = duration<Millis>(section + ".minSyncPeriod", true);
  if (o_.min_sync_period > o_.sync_period) {
    wrong(section + ".minSyncPeriod", "must not be above syncPeriod");
  }
  o_.config_sync_period = duration<Millis>("configSyncPeriod", false);
}

std::string Checker::interface_name(std::string_view path, DetectLocalMode mode) {
  const std::string& name = text(path);
  if (o_.detect_local == mode && (name.empty() || name.size() > kLongestInterfaceName)) {
    wrong(path, "must be the name of an interface or its beginning, 1 to 15 characters");
  }
  return name;
}

void Checker::local_traffic() {
  const std::string& mode = text("detectLocalMode");
  if (mode == "NodeCIDR") {
    o_.detect_local = DetectLocalMode::NodeCidr;
  } else if (mode == "BridgeInterface") {
    o_.detect_local = DetectLocalMode::BridgeInterface;
  } else if (mode == "InterfaceNamePrefix") {
    o_.detect_local = DetectLocalMode::InterfaceNamePrefix;
  } else if (mode != "ClusterCIDR") {
    wrong(
        "detectLocalMode",
        quoted(mode) +
            " is not one of ClusterCIDR, NodeCIDR, BridgeInterface, "
            "InterfaceNamePrefix");
  }
  o_.bridge_interface =
      interface_name("detectLocal.bridgeInterface", DetectLocalMode::BridgeInterface);
  o_.interface_name_prefix =
      interface_name("detectLocal.interfaceNamePrefix", DetectLocalMode::InterfaceNamePrefix);
  if (o_.detect_local == DetectLocalMode::ClusterCidr) {
    cluster_cidrs();
  }
}

// Split literally: a blank after the comma is an error, as for kube-proxy.
void Checker::cluster_cidrs() {
  const std::string& text = this->text("clusterCIDR");
  std::size_t begin = 0;
  while (!text.empty() && begin <= text.size()) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, comma - begin);
    if (const auto cidr = net::parse_cidr(part)) {
      o_.cluster_cidrs.push_back(*cidr);
    } else {
      wrong("clusterCIDR", quoted(part) + " is not a CIDR");
      return;
    }
    begin = comma + 1;
  }
  const auto& cidrs = o_.cluster_cidrs;
  if (cidrs.size() > 2 || (cidrs.size() == 2 && cidrs[0].base.family == cidrs[1].base.family)) {
    wrong("clusterCIDR", "give one CIDR, or one of each family");
  }
}

// Whether NodePorts that are served at these addresses are served at 127.0.0.1, by the rules of
// iptables: a family without ranges is served at all its addresses.
bool reach_ipv4_loopback(const NodePortAddresses& addresses) {
  if (addresses.kind != NodePortAddresses::Kind::Ranges) {
    return addresses.kind == NodePortAddresses::Kind::All;
  }
  const net::IpRange loopback = net::loopback_range(net::Family::IPv4);
  bool any_ipv4 = false;
  for (const net::Cidr& range : addresses.ranges) {
    if (range.base.family == net::Family::IPv4) {
      any_ipv4 = true;
      if (range.base <= loopback.last && loopback.first <= net::last_address(range)) {
        return true;
      }
    }
  }
  return !any_ipv4;
}

void Checker::node_ports() {
  using Kind = NodePortAddresses::Kind;
  NodePortAddresses& addresses = o_.node_port_addresses;
  const auto& texts = get<std::vector<std::string>>(settings_, "nodePortAddresses");
  if (texts == std::vector<std::string>{"primary"}) {
    addresses.kind = Kind::Primary;
  } else if (texts.empty()) {
    addresses.kind = Kind::All;
  } else {
    addresses.kind = Kind::Ranges;
    for (const std::string& text : texts) {
      if (const auto cidr = net::parse_cidr(text)) {
        addresses.ranges.push_back(*cidr);
      } else {
        wrong(
            "nodePortAddresses", quoted(text) + " is not a CIDR, and \"primary\" must stand alone");
      }
    }
  }
  if (const auto own = settings_.find("kubeShunt.localhostNodePorts"); own != settings_.end()) {
    o_.localhost_node_ports = std::get<bool>(own->second);
  } else if (yes("iptables.localhostNodePorts") && reach_ipv4_loopback(addresses)) {
    o_.localhost_node_ports = o_.mode == Mode::Auto;
    o_.route_localnet = o_.mode == Mode::Iptables;
  }
}

std::optional<net::SocketAddress> Checker::server(std::string_view path) {
  const auto address = net::parse_socket_address(text(path));
  if (!address || net::number(address->port) == 0) {
    wrong(path, quoted(text(path)) + " is not IP:port with a port from 1 to 65535");
  }
  return address;
}

void Checker::addresses() {
  if (const auto ip = net::parse_ip(text("bindAddress"))) {
    o_.bind_address = *ip;
  } else {
    wrong("bindAddress", quoted(text("bindAddress")) + " is not an address");
  }
  if (!text("healthzBindAddress").empty()) {
    o_.healthz = server("healthzBindAddress");
  }
  o_.metrics = server("metricsBindAddress");
  o_.bind_address_hard_fail = yes("bindAddressHardFail");
  o_.enable_profiling = yes("enableProfiling");
}

void Checker::conntrack() {
  using std::chrono::seconds;
  Conntrack& out = o_.conntrack;
  out.max_per_core = number("conntrack.maxPerCore", 0, kMost);
  out.min = number("conntrack.min", 0, kMost);
  out.tcp_established_timeout = duration<seconds>("conntrack.tcpEstablishedTimeout", true);
  out.tcp_close_wait_timeout = duration<seconds>("conntrack.tcpCloseWaitTimeout", true);
  out.tcp_be_liberal = yes("conntrack.tcpBeLiberal");
  out.udp_timeout = duration<seconds>("conntrack.udpTimeout", true);
  out.udp_stream_timeout = duration<seconds>("conntrack.udpStreamTimeout", true);
  o_.oom_score_adj = number("oomScoreAdj", -1'000, 1'000);
}

// A name of IPVS: the kernel knows which there are. It is the name of a module, too ("ip_vs_rr").
bool may_be_scheduler(std::string_view name) {
  return !name.empty() && name.size() <= kLongestScheduler && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

void Checker::ipvs() {
  using std::chrono::seconds;
  Ipvs& out = o_.ipvs;
  const bool counts = o_.mode == Mode::Ipvs;
  for (const std::string& text : get<std::vector<std::string>>(settings_, "ipvs.excludeCIDRs")) {
    if (const auto cidr = net::parse_cidr(text)) {
      out.exclude_cidrs.push_back(*cidr);
    } else if (counts) {
      wrong("ipvs.excludeCIDRs", quoted(text) + " is not a CIDR");
    } else {
      out_.warnings.push_back("ipvs.excludeCIDRs: " + quoted(text) + " is not a CIDR");
    }
  }
  if (!counts) {
    return;
  }
  out.scheduler = text("ipvs.scheduler");
  if (!may_be_scheduler(out.scheduler)) {
    wrong(
        "ipvs.scheduler",
        quoted(out.scheduler) +
            " is not the name of a scheduler: 1 to 15 small letters, digits and hyphens");
  }
  out.strict_arp = yes("ipvs.strictARP");
  out.tcp_timeout = duration<seconds>("ipvs.tcpTimeout", true);
  out.tcp_fin_timeout = duration<seconds>("ipvs.tcpFinTimeout", true);
  out.udp_timeout = duration<seconds>("ipvs.udpTimeout", true);
}

void Checker::own() {
  const std::string& variant = text("kubeShunt.iptablesVariant");
  if (variant == "nft" || variant == "legacy") {
    o_.iptables_variant = variant == "nft" ? IptablesVariant::Nft : IptablesVariant::Legacy;
  } else if (variant != "auto") {
    wrong("kubeShunt.iptablesVariant", quoted(variant) + " is not one of auto, nft, legacy");
  }
  o_.status_socket = text("kubeShunt.statusSocket");
  o_.watch_stall_timeout = duration<Millis>("kubeShunt.watchStallTimeout", false);
  o_.manifests = text("kubeShunt.manifests");
  o_.snapshot = text("kubeShunt.snapshot");
  o_.service_metrics_limit = number("kubeShunt.serviceMetricsLimit", 0, kMost);
  o_.readyz_max_contact_age = duration<Millis>("kubeShunt.readyzMaxContactAge", false);
}

void Checker::what_to_do() {
  o_.config_file = text("--config");
  o_.init_only = yes("--init-only");
  o_.cleanup = yes("--cleanup");
  o_.cleanup_kube_proxy = yes("--cleanup-kube-proxy");
}

Checked Checker::run() {
  what_to_do();
  gates();
  client();
  node_name();
  logging();
  mode();
  masquerading();
  periods();
  local_traffic();
  node_ports();
  addresses();
  conntrack();
  ipvs();
  own();
  return std::move(out_);
}

}  // namespace

Checked check(const Settings& settings) { return Checker(settings).run(); }

std::vector<net::Cidr> NodePortAddresses::or_none_for_primary() const {
  switch (kind) {
    case Kind::All:
      return {*net::parse_cidr("0.0.0.0/0"), *net::parse_cidr("::/0")};
    case Kind::Primary:
      return {};
    case Kind::Ranges:
      return ranges;
  }
  return {};
}

}  // namespace shunt::config
