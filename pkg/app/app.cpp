#include "app/app.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apiserver/connector.h"
#include "apiserver/reflector.h"
#include "app/kernel_settings.h"
#include "backend/conntrack/reconciler.h"
#include "backend/conntrack/wire.h"
#include "backend/nft/nft_backend.h"
#include "backend/nft/wire.h"
#include "base/log.h"
#include "base/published.h"
#include "health/status_server.h"
#include "relay/relay.h"
#include "sync/sync_loop.h"

namespace shunt::app {
namespace {

using config::DetectLocalMode;
using log::kv;

// How long the status socket waits for the sync loop before it answers with what it has.
constexpr Millis kSettleTimeout{10'000};

// spec/config.md §6.
bool node_has_ipv6() {
  if (::access("/proc/net/if_inet6", F_OK) != 0) {
    return false;
  }
  int disabled = 0;
  std::ifstream("/proc/sys/net/ipv6/conf/all/disable_ipv6") >> disabled;
  return disabled == 0;
}

backend::nft::ProgramSettings program_settings(const config::Options& options) {
  using Kind = backend::nft::LocalDetector::Kind;
  backend::nft::ProgramSettings settings;
  settings.masquerade_mark = 1U << options.masquerade_bit;
  settings.masquerade_all = options.masquerade_all;
  settings.drop_invalid = !options.conntrack.tcp_be_liberal;
  switch (options.detect_local) {
    case DetectLocalMode::ClusterCidr:
    case DetectLocalMode::NodeCidr:
      settings.detector = {Kind::SourceRange, {}};
      break;
    case DetectLocalMode::BridgeInterface:
      settings.detector = {Kind::InputInterface, options.bridge_interface};
      break;
    case DetectLocalMode::InterfaceNamePrefix:
      settings.detector = {Kind::InputInterfacePrefix, options.interface_name_prefix};
      break;
  }
  return settings;
}

Result<std::vector<sync::FamilyBackend>> make_backends(const config::Options& options) {
  std::vector<net::Family> families{net::Family::IPv4};
  if (node_has_ipv6()) {
    families.push_back(net::Family::IPv6);
  } else {
    log::info("no IPv6 on this node, Services get IPv4 only");
  }
  std::vector<sync::FamilyBackend> backends;
  for (const net::Family family : families) {
    auto transport = backend::nft::KernelTransport::open();
    auto purge_transport = backend::nft::KernelTransport::open();
    if (!transport || !purge_transport) {
      return fail("nftables", transport ? purge_transport.error() : transport.error());
    }
    backends.push_back(
        {family,
         std::make_unique<backend::nft::NftBackend>(
             family,
             program_settings(options),
             std::move(*transport),
             std::make_unique<backend::nft::AffinityPurger>(family, std::move(*purge_transport)))});
  }
  return backends;
}

Result<std::unique_ptr<backend::conntrack::Reconciler>> make_reconciler() {
  auto table = backend::conntrack::KernelFlowTable::open();
  if (!table) {
    return tl::unexpected(table.error());
  }
  return std::make_unique<backend::conntrack::Reconciler>(std::move(*table), seeded_random());
}

nlohmann::json to_json(const backend::conntrack::Counters& counters) {
  return {
      {"passes", counters.passes},
      {"failures", counters.failures},
      {"scanned", counters.scanned},
      {"deleted", counters.deleted},
      {"lastMicroseconds", counters.last_duration.count()}};
}

// What the relay may use. The soft limit of the process is often 1024 for the sake of select(),
// which nobody here calls.
relay::Limits relay_limits() {
  rlimit limit{};
  (void)::getrlimit(RLIMIT_NOFILE, &limit);  // cannot fail
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);  // else it stays as it is, which is asked next
  (void)::getrlimit(RLIMIT_NOFILE, &limit);
  return relay::limits_within(limit.rlim_cur);
}

class Daemon {
 public:
  Daemon(
      const config::Options& options,
      std::unique_ptr<apiserver::Connector> connector,
      std::vector<sync::FamilyBackend> backends,
      std::unique_ptr<backend::conntrack::Reconciler> reconciler,
      relay::Relay* relay,
      std::function<void(const Error&)> give_up)
      : connector_(std::move(connector)),
        reconciler_(std::move(reconciler)),
        loop_(
            sync_options(options, *reconciler_, relay, std::move(give_up)),
            mailboxes_,
            std::move(backends),
            seeded_random()),
        services_(*connector_, reflector_options(options), mailboxes_.services),
        slices_(*connector_, reflector_options(options), mailboxes_.slices),
        nodes_(*connector_, reflector_options(options), mailboxes_.nodes),
        service_cidrs_(*connector_, reflector_options(options), mailboxes_.service_cidrs) {}

  void start() {
    reconciler_->start();
    sync_thread_ = std::thread([this] {
      (void)::pthread_setname_np(::pthread_self(), "sync");  // a name is a nicety
      loop_.run();
    });
    services_.start();
    slices_.start();
    nodes_.start();
    service_cidrs_.start();
  }

  void stop() {
    services_.stop();
    slices_.stop();
    nodes_.stop();
    service_cidrs_.stop();
    loop_.stop();
    sync_thread_.join();
    reconciler_->stop();
  }

  // One line of JSON. The resource versions are read first: what they cover has been delivered, so
  // that after settle() it is in the kernel.
  std::string status() {
    nlohmann::json out;
    out["resourceVersions"] = {
        {"services", services_.status().resource_version},
        {"endpointslices", slices_.status().resource_version},
        {"nodes", nodes_.status().resource_version},
        {"servicecidrs", service_cidrs_.status().resource_version}};
    const auto status = loop_.settle(kSettleTimeout);
    out["synced"] = status->synced;
    // In this order: what the sync loop has applied it has handed over.
    out["idle"] = status->idle && loop_.backends_idle() && reconciler_->idle();
    out["commits"] = status->cost.commits;
    out["messages"] = status->cost.messages;
    out["bytes"] = status->cost.bytes;
    out["frontends"] = status->frontends;
    out["setAside"] = status->set_aside;
    out["conflicts"] = status->conflicts;
    sync::WithoutLocal without_local;
    for (const auto& [family, of_family] : status->without_local) {
      without_local.internal += of_family.internal;
      without_local.external += of_family.external;
    }
    out["servicesWithoutLocalEndpoints"] = {
        {"internal", without_local.internal}, {"external", without_local.external}};
    out["error"] = status->error;
    for (const net::Family family : {net::Family::IPv4, net::Family::IPv6}) {
      out["conntrack"][net::to_string(family)] = to_json(reconciler_->counters(family));
    }
    return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

 private:
  static sync::SyncOptions sync_options(
      const config::Options& options,
      backend::FlowCleaner& flow_cleaner,
      relay::Relay* relay,
      std::function<void(const Error&)> give_up) {
    sync::SyncOptions out;
    out.flow_cleaner = &flow_cleaner;
    out.node_name = options.node_name;
    out.periods.min_interval = options.min_sync_period;
    out.periods.retry_set_aside = options.sync_period;
    out.node_cidrs = options.detect_local == DetectLocalMode::NodeCidr;
    if (options.detect_local == DetectLocalMode::ClusterCidr) {
      out.cluster_cidrs = options.cluster_cidrs;
    }
    out.node_ports = options.node_port_addresses;
    out.bind_address = options.bind_address;
    out.give_up = std::move(give_up);
    if (relay != nullptr) {
      out.frontends_changed = [relay](
                                  const desired::DesiredState& wanted,
                                  std::span<const desired::FrontendKey> touched) {
        relay->update(wanted, touched);
      };
    }
    return out;
  }

  static apiserver::ReflectorOptions reflector_options(const config::Options& options) {
    apiserver::ReflectorOptions out;
    out.node_name = options.node_name;
    out.stall_timeout = options.watch_stall_timeout;
    out.accept = apiserver::accept_header(options.content_type, options.accept_content_types);
    return out;
  }

  std::unique_ptr<apiserver::Connector> connector_;
  std::unique_ptr<backend::conntrack::Reconciler> reconciler_;
  sync::Mailboxes mailboxes_;
  sync::SyncLoop loop_;
  apiserver::Reflector<kube::Service> services_;
  apiserver::Reflector<kube::EndpointSlice> slices_;
  apiserver::Reflector<kube::Node> nodes_;
  apiserver::Reflector<kube::ServiceCidr> service_cidrs_;
  std::thread sync_thread_;
};

// Blocks until SIGTERM or SIGINT. They are blocked in every thread, so that only this wait sees
// them.
int wait_for_signal(const sigset_t& signals) {
  int received = 0;
  while (::sigwait(&signals, &received) != 0) {
  }
  return received;
}

}  // namespace

Result<> run(const config::Options& options) {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  (void)::pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // fails only for a wrong `how`
  (void)::signal(SIGPIPE, SIG_IGN);  // a peer that went is an error code, not the end

  log::set_level(options.verbosity >= 2 ? log::Level::Debug : log::Level::Info);
  for (const std::string& field : options.warnings) {
    log::warn("configuration field has no effect yet", {kv("field", field)});
  }
  if (auto set = set_up_conntrack(options.conntrack); !set) {
    return set;
  }
  auto backends = make_backends(options);
  if (!backends) {
    return tl::unexpected(backends.error());
  }
  auto reconciler = make_reconciler();
  if (!reconciler) {
    return tl::unexpected(reconciler.error());
  }
  if (options.init_only) {
    log::info("the node is set up");
    return {};
  }
  auto connector = apiserver::Connector::open({options.kubeconfig, options.master, "kube-shunt"});
  if (!connector) {
    return tl::unexpected(connector.error());
  }
  log::info(
      "kube-shunt starts",
      {kv("node", options.node_name),
       kv("server", (*connector)->server()),
       kv("mode", "nftables")});

  std::unique_ptr<relay::Relay> relay;
  if (options.localhost_node_ports) {
    auto started = relay::Relay::start(relay_limits(), seeded_random());
    if (!started) {
      return tl::unexpected(started.error());
    }
    relay = std::move(*started);
  }
  Published<Error> gave_up;
  Daemon daemon(
      options,
      std::move(*connector),
      std::move(*backends),
      std::move(*reconciler),
      relay.get(),
      [&gave_up](const Error& error) {
        gave_up.publish(std::make_shared<const Error>(error));
        (void)::kill(::getpid(), SIGTERM);  // to ourselves: wakes the wait below
      });
  daemon.start();
  std::unique_ptr<health::StatusServer> status;
  Result<> outcome;
  if (!options.status_socket.empty()) {
    auto started =
        health::StatusServer::start(options.status_socket, [&] { return daemon.status(); });
    if (started) {
      status = std::move(*started);
    } else {
      outcome = tl::unexpected(started.error());
    }
  }
  if (outcome) {
    const int signal = wait_for_signal(signals);
    if (const auto error = gave_up.latest()) {
      outcome = tl::unexpected(*error);
    }
    log::info("stopping, Services stay as they are", {kv("signal", signal)});
  }
  status.reset();
  daemon.stop();
  return outcome;
}

}  // namespace shunt::app
