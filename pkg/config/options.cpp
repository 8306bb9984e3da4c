#include "config/options.h"

#include <limits.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

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

Result<Options> check(const RawSettings& raw) {
  Options options;
  options.kubeconfig = raw.kubeconfig;
  options.master = raw.master;
  options.masquerade_all = raw.masquerade_all;
  options.bridge_interface = raw.bridge_interface;
  options.interface_name_prefix = raw.interface_name_prefix;
  options.verbosity = raw.verbosity;
  options.warnings = raw.warnings;
  if (!raw.mode.empty() && raw.mode != "nftables") {
    return fail(Errc::Unsupported, "mode: \"" + raw.mode + "\" is not built yet, only nftables is");
  }
  if (raw.masquerade_bit < 0 || raw.masquerade_bit > 31) {
    return fail(Errc::Invalid, "nftables.masqueradeBit: must be 0 to 31");
  }
  options.masquerade_bit = static_cast<std::uint32_t>(raw.masquerade_bit);

  auto name = node_name(raw.hostname_override);
  auto mode = detect_local_mode(raw);
  auto cidrs = cluster_cidrs(raw.cluster_cidr);
  auto sync = period("nftables.syncPeriod", raw.sync_period, options.sync_period);
  auto min_sync = period("nftables.minSyncPeriod", raw.min_sync_period, options.min_sync_period);
  for (const Error* error :
       {name ? nullptr : &name.error(),
        mode ? nullptr : &mode.error(),
        cidrs ? nullptr : &cidrs.error(),
        sync ? nullptr : &sync.error(),
        min_sync ? nullptr : &min_sync.error()}) {
    if (error != nullptr) {
      return tl::unexpected(*error);
    }
  }
  if (*min_sync > *sync) {
    return fail(Errc::Invalid, "nftables.minSyncPeriod: must not be above syncPeriod");
  }
  options.node_name = std::move(*name);
  options.detect_local = *mode;
  options.cluster_cidrs = std::move(*cidrs);
  options.sync_period = *sync;
  options.min_sync_period = *min_sync;
  return options;
}

}  // namespace

std::optional<Millis> parse_duration(std::string_view text) {
  static constexpr struct {
    std::string_view name;
    double millis;
  } kUnits[] = {{"ns", 1e-6}, {"us", 1e-3}, {"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}};
  if (text == "0") {
    return Millis{0};
  }
  double total = 0;
  if (text.empty()) {
    return std::nullopt;
  }
  while (!text.empty()) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 0 || !std::isfinite(value)) {
      return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    std::size_t letters = 0;
    while (letters < text.size() && std::isalpha(static_cast<unsigned char>(text[letters])) != 0) {
      ++letters;
    }
    const auto unit = std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& u) {
      return u.name == text.substr(0, letters);
    });
    if (unit == std::end(kUnits)) {
      return std::nullopt;
    }
    total += value * unit->millis;
    text.remove_prefix(letters);
  }
  if (total > 1e15) {
    return std::nullopt;
  }
  return Millis(static_cast<Millis::rep>(total));
}

Result<Invocation> parse_command_line(int argc, const char* const* argv) {
  CLI::App app{"Makes Kubernetes Services work on this node, through nftables.", "kube-shunt"};
  RawSettings flags;
  std::string config;
  std::string status_socket;
  std::string stall = "120s";
  app.add_option(
      "--config", config, "KubeProxyConfiguration file; flags that it can say are then ignored");
  app.add_option(
      "--kubeconfig", flags.kubeconfig, "kubeconfig file; without it and --master: in-cluster");
  app.add_option("--master", flags.master, "URL of the API server; overrides the kubeconfig's");
  app.add_option("--hostname-override", flags.hostname_override, "name of the Node");
  app.add_option("--proxy-mode", flags.mode, "nftables");
  app.add_option("--cluster-cidr", flags.cluster_cidr, "ranges of the pods, one of each family");
  app.add_option(
      "--detect-local-mode",
      flags.detect_local_mode,
      "how traffic of local pods is told: ClusterCIDR, NodeCIDR, BridgeInterface, "
      "InterfaceNamePrefix");
  app.add_option("--pod-bridge-interface", flags.bridge_interface, "the bridge of BridgeInterface");
  app.add_option(
      "--pod-interface-name-prefix",
      flags.interface_name_prefix,
      "the prefix of InterfaceNamePrefix");
  app.add_flag("--masquerade-all", flags.masquerade_all, "masquerade all ClusterIP traffic");
  app.add_option(
      "--iptables-sync-period",
      flags.sync_period,
      "how often what the kernel refused is tried again");
  app.add_option(
      "--iptables-min-sync-period", flags.min_sync_period, "shortest time between two runs");
  CLI::Option* verbosity =
      app.add_option("-v,--v", flags.verbosity, "log verbosity; from 2 on every change is logged");
  app.add_option(
      "--status-socket", status_socket, "Unix socket that tells the state of the daemon as JSON");
  app.add_option(
      "--watch-stall-timeout", stall, "a watch from which nothing came for this long is replaced");
  bool version = false;
  app.add_flag("--version", version, "print the version and exit");

  Invocation out;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    out.exit_code = 0;
    out.text = app.help();
    return out;
  } catch (const CLI::ParseError& error) {
    return fail(Errc::Invalid, error.what());
  }
  if (version) {
    out.exit_code = 0;
    out.text = std::string("kube-shunt ") + SHUNT_VERSION + "\n";
    return out;
  }

  RawSettings settings = flags;
  if (!config.empty()) {
    // spec/config.md §3: with a file only --master, --hostname-override and the logging flags
    // count.
    settings = RawSettings{};
    settings.kubeconfig = flags.kubeconfig;  // ours: a file without clientConnection.kubeconfig may
                                             // leave it to the flag
    if (auto read = read_config_file(config, settings); !read) {
      return tl::unexpected(read.error());
    }
    settings.master = flags.master;
    if (!flags.hostname_override.empty()) {
      settings.hostname_override = flags.hostname_override;
    }
    if (verbosity->count() > 0) {
      settings.verbosity = flags.verbosity;
    }
  }
  auto options = check(settings);
  if (!options) {
    return tl::unexpected(options.error());
  }
  const auto stall_timeout = parse_duration(stall);
  if (!stall_timeout || stall_timeout->count() == 0) {
    return fail(Errc::Invalid, "--watch-stall-timeout: \"" + stall + "\" is not a duration");
  }
  out.options = std::move(*options);
  out.options.status_socket = status_socket;
  out.options.watch_stall_timeout = *stall_timeout;
  return out;
}

}  // namespace shunt::config
