// The daemon's settings: kube-proxy's flags and its KubeProxyConfiguration file (spec/config.md
// §1-§3) and our own, into one checked struct. FIELDS.md lists every one, README.md says which of
// them wins.
//
// A command line is kept as it was given, so that it can be evaluated again when the file changed
// (load); what then differs, and how it can be applied, says differences().
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/backoff.h"
#include "base/log.h"
#include "base/result.h"
#include "config/mode.h"
#include "net/cidr.h"
#include "net/socket_address.h"

namespace shunt::config {

enum class DetectLocalMode : std::uint8_t {
  ClusterCidr,
  NodeCidr,
  BridgeInterface,
  InterfaceNamePrefix
};

// What kube-proxy asks of the kernel's connection tracking; 0 leaves a value to the system.
struct Conntrack {
  std::int32_t max_per_core = 32'768;
  std::int32_t min = 131'072;
  std::chrono::seconds tcp_established_timeout{86'400};
  std::chrono::seconds tcp_close_wait_timeout{3'600};
  bool tcp_be_liberal = false;
  std::chrono::seconds udp_timeout{0};
  std::chrono::seconds udp_stream_timeout{0};
};

// The section `ipvs`, for the mode of that name; but for the excluded ranges, of which every mode
// leaves the virtual servers alone.
struct Ipvs {
  std::string scheduler = "rr";  // as IPVS names it: "wrr", "lc", ...
  std::vector<net::Cidr> exclude_cidrs;
  bool strict_arp = false;
  // 0 leaves a timeout to the system.
  std::chrono::seconds tcp_timeout{0};
  std::chrono::seconds tcp_fin_timeout{0};
  std::chrono::seconds udp_timeout{0};
};

// Which addresses of the node serve NodePorts.
struct NodePortAddresses {
  enum class Kind : std::uint8_t { All, Primary, Ranges };
  Kind kind = Kind::Primary;
  std::vector<net::Cidr> ranges;  // Kind::Ranges

  // The same as ranges alone, as the sync loop wants it: none stands for `primary`.
  std::vector<net::Cidr> or_none_for_primary() const;
  bool operator==(const NodePortAddresses&) const = default;
};

struct VerbosityOfFiles {  // logging.vmodule
  std::string pattern;
  std::uint32_t verbosity = 0;
  bool operator==(const VerbosityOfFiles&) const = default;
};

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): there is one, grouped for the reader
struct Options {
  std::string config_file;  // --config; "" for none
  std::string config_text;  // its bytes, as read: where ConfigFileWatch begins

  std::string kubeconfig;  // "" and no master: in-cluster
  std::string master;
  std::string content_type;          // clientConnection.contentType; "": protobuf
  std::string accept_content_types;  // clientConnection.acceptContentTypes
  double qps = 5;
  std::int32_t burst = 10;
  std::string node_name;  // resolved: the override, or the host's name; lower case

  // As configured; decide_mode() says the back end. The values below are those of the section that
  // counts for it.
  Mode mode = Mode::Auto;
  std::uint32_t masquerade_bit = 14;
  bool masquerade_all = false;
  Millis min_sync_period{0};
  Millis sync_period{30'000};

  DetectLocalMode detect_local = DetectLocalMode::ClusterCidr;
  std::string bridge_interface;
  std::string interface_name_prefix;
  std::vector<net::Cidr> cluster_cidrs;
  NodePortAddresses node_port_addresses;
  net::IpAddress bind_address;  // unspecified: the Node's addresses stand
  Conntrack conntrack;
  Ipvs ipvs;
  bool allow_external_ips = true;  // the gate AllowServiceExternalIPs

  std::optional<net::SocketAddress> healthz;  // none: no such server
  std::optional<net::SocketAddress> metrics;
  bool bind_address_hard_fail = false;
  bool enable_profiling = false;
  std::int32_t oom_score_adj = -999;
  std::chrono::milliseconds config_sync_period{900'000};

  log::Format log_format = log::Format::Logfmt;
  std::int64_t verbosity = 0;  // log::level_for_verbosity() says the level
  std::vector<VerbosityOfFiles> vmodule;

  // What to do instead of running.
  bool init_only = false;  // do what needs privileges, and leave
  bool cleanup = false;
  bool cleanup_kube_proxy = false;

  // Our own.
  IptablesVariant iptables_variant = IptablesVariant::Auto;
  bool localhost_node_ports =
      false;                    // by the relay: kubeShunt.localhostNodePorts, or by an empty mode
  bool route_localnet = false;  // by rules, as kube-proxy's iptables mode, in that mode
  std::string status_socket;    // "" for none
  Millis watch_stall_timeout{120'000};         // a watch without a byte for this long is replaced
  std::string manifests;                       // directory: standalone, no API server; "" for none
  std::string snapshot;                        // path of the last-known-good file; "" for none
  std::int32_t service_metrics_limit = 1'000;  // 0: none
  Millis readyz_max_contact_age{600'000};

  std::vector<std::string> warnings;  // sentences for the log; each names its field or flag

  // What is in effect, without secrets: as a KubeProxyConfiguration with our section, which gives
  // the same options again; and as /configz answers.
  std::string effective_yaml;
  std::string configz;
  std::map<std::string, std::string> effective;  // by field: for differences()
};

// The arguments of the process, without its name.
struct CommandLine {
  std::vector<std::string> arguments;
};

// Evaluates flags and file; reads the file anew at each call, writes nothing, ends nothing. The
// error names every field or flag that is wrong, in one line. Any thread.
Result<Options> load(const CommandLine& line);
// The same with `file` as the content of the file, whether or not --config names one.
Result<Options> load_text(const CommandLine& line, std::string_view file);

// What the command line asks for besides running.
struct Invocation {
  CommandLine line;
  Options options;
  std::optional<int> exit_code;  // set: print `text` to stdout, `diagnostics` to stderr, and leave
  std::string text;
  std::string diagnostics;
};

// For main: load(), and what --help, --version, --check-config and --write-config-to do instead of
// running. Errors are for stderr and exit code 2.
Result<Invocation> parse_command_line(int argc, const char* const* argv);

// "30s", "1m30s", "2h22m", "100ms": Go's durations, not negative.
std::optional<Millis> parse_duration(std::string_view text);

struct FieldChange {
  enum class Application : std::uint8_t {
    AtOnce,        // log level and format: while everything runs
    ByRebuilding,  // the daemon's inner parts are built anew; the process and the kernel's state
                   // stay
    Nothing        // the field has no effect
  };
  std::string field;
  std::string before;  // as JSON
  std::string after;
  Application application = Application::ByRebuilding;
};

// What a reload changes, in the order of the table. No field needs a new process: what only a
// process can do (signals, its limits) has no field.
std::vector<FieldChange> differences(const Options& running, const Options& next);

}  // namespace shunt::config
