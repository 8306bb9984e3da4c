#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "config/raw_settings.h"

namespace shunt::config {
namespace {

std::string trimmed_lower(std::string text) {
  const auto space = [](unsigned char c) { return std::isspace(c) != 0; };
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), space));
  text.erase(std::find_if_not(text.rbegin(), text.rend(), space).base(), text.end());
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text;
}

// spec/config.md §5.
Result<std::string> node_name(const std::string& override_name) {
  std::string name = override_name;
  if (name.empty()) {
    char buffer[HOST_NAME_MAX + 1] = {};
    if (::gethostname(buffer, sizeof buffer - 1) == 0) {
      name = buffer;
    }
  }
  name = trimmed_lower(name);
  if (name.empty()) {
    return fail(Errc::Invalid, "hostnameOverride: the node's name is empty");
  }
  return name;
}

Result<std::vector<net::Cidr>> cluster_cidrs(const std::string& text) {
  std::vector<net::Cidr> out;
  std::size_t begin = 0;
  while (!text.empty() && begin <= text.size()) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, comma - begin);
    const auto cidr = net::parse_cidr(part);
    if (!cidr) {
      return fail(Errc::Invalid, "clusterCIDR: \"" + part + "\" is not a CIDR");
    }
    out.push_back(*cidr);
    begin = comma + 1;
  }
  if (out.size() > 2 || (out.size() == 2 && out[0].base.family == out[1].base.family)) {
    return fail(Errc::Invalid, "clusterCIDR: give one CIDR, or one of each family");
  }
  return out;
}

// It goes into requests as it is.
Result<std::string> header_value(const char* field, const std::string& text) {
  if (std::ranges::any_of(text, [](char c) { return c < ' ' || c > '~'; })) {
    return fail(Errc::Invalid, std::string(field) + ": has characters that no header may have");
  }
  return text;
}

Result<DetectLocalMode> detect_local_mode(const RawSettings& raw) {
  const std::string& mode = raw.detect_local_mode;
  if (mode.empty() || mode == "ClusterCIDR") {
    return DetectLocalMode::ClusterCidr;
  }
  if (mode == "NodeCIDR") {
    return DetectLocalMode::NodeCidr;
  }
  if (mode == "BridgeInterface") {
    if (raw.bridge_interface.empty() || raw.bridge_interface.size() > 15) {
      return fail(Errc::Invalid, "detectLocal.bridgeInterface: must be the name of an interface");
    }
    return DetectLocalMode::BridgeInterface;
  }
  if (mode == "InterfaceNamePrefix") {
    if (raw.interface_name_prefix.empty() || raw.interface_name_prefix.size() > 15) {
      return fail(
          Errc::Invalid, "detectLocal.interfaceNamePrefix: must begin the name of an interface");
    }
    return DetectLocalMode::InterfaceNamePrefix;
  }
  return fail(Errc::Invalid, "detectLocalMode: \"" + mode + "\" is not a mode");
}

Result<Millis> period(const char* field, const std::string& text, Millis fallback) {
  if (text.empty()) {
    return fallback;
  }
  const auto parsed = parse_duration(text);
  if (!parsed) {
    return fail(Errc::Invalid, std::string(field) + ": \"" + text + "\" is not a duration");
  }
  return parsed->count() == 0 ? fallback : *parsed;
}

// spec/config.md §2: CIDRs, or the word alone. No list is that word, in nftables mode.
Result<std::vector<net::Cidr>> node_port_addresses(const std::vector<std::string>& texts) {
  std::vector<net::Cidr> out;
  if (texts == std::vector<std::string>{"primary"}) {
    return out;
  }
  for (const std::string& text : texts) {
    const auto cidr = net::parse_cidr(text);
    if (!cidr) {
      return fail(
          Errc::Invalid,
          "nodePortAddresses: \"" + text + "\" is not a CIDR, and \"primary\" stands alone");
    }
    out.push_back(*cidr);
  }
  return out;
}

Result<net::IpAddress> bind_address(const std::string& text) {
  if (text.empty()) {
    return net::IpAddress{};
  }
  const auto ip = net::parse_ip(text);
  if (!ip) {
    return fail(Errc::Invalid, "bindAddress: \"" + text + "\" is not an address");
  }
  return *ip;
}

Result<Conntrack> conntrack(const RawSettings& raw) {
  Conntrack out;
  out.max_per_core = raw.conntrack_max_per_core;
  out.min = raw.conntrack_min;
  out.tcp_be_liberal = raw.tcp_be_liberal;
  if (out.max_per_core < 0 || out.min < 0) {
    return fail(
        Errc::Invalid,
        std::string("conntrack.") + (out.max_per_core < 0 ? "maxPerCore" : "min") +
            ": must not be negative");
  }
  const struct {
    const char* field;
    const std::string& text;
    std::chrono::seconds& target;
  } timeouts[] = {
      {"tcpEstablishedTimeout", raw.tcp_established_timeout, out.tcp_established_timeout},
      {"tcpCloseWaitTimeout", raw.tcp_close_wait_timeout, out.tcp_close_wait_timeout},
      {"udpTimeout", raw.udp_timeout, out.udp_timeout},
      {"udpStreamTimeout", raw.udp_stream_timeout, out.udp_stream_timeout}};
  for (const auto& timeout : timeouts) {
    const auto parsed = parse_duration(timeout.text);
    if (!parsed) {
      return fail(
          Errc::Invalid,
          std::string("conntrack.") + timeout.field + ": \"" + timeout.text +
              "\" is not a duration of 0 or more");
    }
    timeout.target = std::chrono::floor<std::chrono::seconds>(*parsed);
  }
  return out;
}

}  // namespace

Result<Options> check(const RawSettings& raw) {
  Options options;
  options.kubeconfig = raw.kubeconfig;
  options.master = raw.master;
  options.masquerade_all = raw.masquerade_all;
  options.bridge_interface = raw.bridge_interface;
  options.interface_name_prefix = raw.interface_name_prefix;
  options.localhost_node_ports = raw.localhost_node_ports;
  options.verbosity = raw.verbosity;
  options.warnings = raw.warnings;
  if (!raw.mode.empty() && raw.mode != "nftables") {
    return fail(Errc::Unsupported, "mode: \"" + raw.mode + "\" is not built yet, only nftables is");
  }
  if (raw.masquerade_bit < 0 || raw.masquerade_bit > 31) {
    return fail(Errc::Invalid, "nftables.masqueradeBit: must be 0 to 31");
  }
  options.masquerade_bit = static_cast<std::uint32_t>(raw.masquerade_bit);

  auto content_type = header_value("clientConnection.contentType", raw.content_type);
  auto accept = header_value("clientConnection.acceptContentTypes", raw.accept_content_types);
  auto name = node_name(raw.hostname_override);
  auto mode = detect_local_mode(raw);
  auto cidrs = cluster_cidrs(raw.cluster_cidr);
  auto node_ports = node_port_addresses(raw.node_port_addresses);
  auto bind = bind_address(raw.bind_address);
  auto limits = conntrack(raw);
  auto sync = period("nftables.syncPeriod", raw.sync_period, options.sync_period);
  auto min_sync = period("nftables.minSyncPeriod", raw.min_sync_period, options.min_sync_period);
  for (const Error* error :
       {content_type ? nullptr : &content_type.error(),
        accept ? nullptr : &accept.error(),
        name ? nullptr : &name.error(),
        mode ? nullptr : &mode.error(),
        cidrs ? nullptr : &cidrs.error(),
        node_ports ? nullptr : &node_ports.error(),
        bind ? nullptr : &bind.error(),
        limits ? nullptr : &limits.error(),
        sync ? nullptr : &sync.error(),
        min_sync ? nullptr : &min_sync.error()}) {
    if (error != nullptr) {
      return tl::unexpected(*error);
    }
  }
  if (*min_sync > *sync) {
    return fail(Errc::Invalid, "nftables.minSyncPeriod: must not be above syncPeriod");
  }
  options.content_type = std::move(*content_type);
  options.accept_content_types = std::move(*accept);
  options.node_name = std::move(*name);
  options.detect_local = *mode;
  options.cluster_cidrs = std::move(*cidrs);
  options.node_port_addresses = std::move(*node_ports);
  options.bind_address = *bind;
  options.conntrack = *limits;
  options.sync_period = *sync;
  options.min_sync_period = *min_sync;
  return options;
}

}  // namespace shunt::config
