#include "config/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "config/raw_settings.h"

namespace shunt::config {
namespace {

// As CLI11 takes them. "--flag=" is a flag with an empty value, as for kube-proxy; CLI11 would take
// the argument after it for the value.
std::vector<std::string> backwards(const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  for (const std::string& argument : arguments) {
    const std::size_t end = argument.find('=');
    if (argument.starts_with("--") && end + 1 == argument.size()) {
      out.push_back(argument.substr(0, end));
      out.emplace_back();
    } else {
      out.push_back(argument);
    }
  }
  std::reverse(out.begin(), out.end());
  return out;
}

void add_flags(CLI::App& app, RawSettings& flags) {
  app.add_option(
      "--kubeconfig", flags.kubeconfig, "kubeconfig file; without it and --master: in-cluster");
  app.add_option("--master", flags.master, "URL of the API server; overrides the kubeconfig's");
  app.add_option(
      "--kube-api-content-type",
      flags.content_type,
      "how objects are asked for: application/vnd.kubernetes.protobuf unless told, or "
      "application/json");
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
}

// What the node is told about itself.
void add_node_flags(CLI::App& app, RawSettings& flags) {
  app.add_option(
         "--nodeport-addresses",
         flags.node_port_addresses,
         "ranges of the node's addresses that serve NodePorts, or \"primary\", the default")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option(
      "--bind-address",
      flags.bind_address,
      "the node's own address, when it is not the Node's; nothing is bound to it");
  app.add_option(
      "--conntrack-max-per-core",
      flags.conntrack_max_per_core,
      "connections tracked per CPU; 0 leaves the limit and ignores --conntrack-min");
  app.add_option("--conntrack-min", flags.conntrack_min, "connections tracked at least");
  app.add_option(
      "--conntrack-tcp-timeout-established",
      flags.tcp_established_timeout,
      "how long idle TCP connections are tracked; 0 leaves it");
  app.add_option(
      "--conntrack-tcp-timeout-close-wait",
      flags.tcp_close_wait_timeout,
      "how long half-closed TCP connections are tracked; 0 leaves it");
  app.add_flag(
      "--conntrack-tcp-be-liberal",
      flags.tcp_be_liberal,
      "let segments outside the window pass for tracked");
  app.add_option(
      "--conntrack-udp-timeout",
      flags.udp_timeout,
      "how long one-way UDP flows are tracked; 0 leaves it");
  app.add_option(
      "--conntrack-udp-timeout-stream",
      flags.udp_stream_timeout,
      "how long answered UDP flows are tracked; 0 leaves it");
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
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // as kube-proxy
  RawSettings flags;
  std::string config;
  std::string status_socket;
  std::string stall = "120s";
  app.add_option(
      "--config", config, "KubeProxyConfiguration file; flags that it can say are then ignored");
  add_flags(app, flags);
  add_node_flags(app, flags);
  CLI::Option* verbosity =
      app.add_option("-v,--v", flags.verbosity, "log verbosity; from 2 on every change is logged");
  app.add_option(
      "--status-socket", status_socket, "Unix socket that tells the state of the daemon as JSON");
  app.add_option(
      "--watch-stall-timeout", stall, "a watch from which nothing came for this long is replaced");
  bool init_only = false;
  app.add_flag(
      "--init-only",
      init_only,
      "set what needs privileges (connection tracking limits) and exit; the daemon then runs with "
      "less");
  bool version = false;
  app.add_flag("--version", version, "print the version and exit");

  Invocation out;
  try {
    app.parse(backwards({argv + 1, argv + argc}));
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
  out.options.init_only = init_only;
  out.options.status_socket = status_socket;
  out.options.watch_stall_timeout = *stall_timeout;
  return out;
}

}  // namespace shunt::config
