#include "app/app.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apiserver/connector.h"
#include "apiserver/reflector.h"
#include "backend/nft/nft_backend.h"
#include "backend/nft/wire.h"
#include "base/log.h"
#include "health/status_server.h"
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
    if (!transport) {
      return fail("nftables", transport.error());
    }
    backends.push_back(
        {family,
         std::make_unique<backend::nft::NftBackend>(
             family, program_settings(options), std::move(*transport))});
  }
  return backends;
}

class Daemon {
 public:
  Daemon(
      const config::Options& options,
      std::unique_ptr<apiserver::Connector> connector,
      std::vector<sync::FamilyBackend> backends)
      : connector_(std::move(connector)),
        loop_(sync_options(options), mailboxes_, std::move(backends), seeded_random()),
        services_(*connector_, reflector_options(options), mailboxes_.services),
        slices_(*connector_, reflector_options(options), mailboxes_.slices),
        nodes_(*connector_, reflector_options(options), mailboxes_.nodes),
        service_cidrs_(*connector_, reflector_options(options), mailboxes_.service_cidrs) {}

  void start() {
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
    out["idle"] = status->idle;
    out["commits"] = status->commits;
    out["messages"] = status->messages;
    out["bytes"] = status->bytes;
    out["frontends"] = status->frontends;
    out["setAside"] = status->set_aside;
    out["conflicts"] = status->conflicts;
    out["error"] = status->error;
    return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

 private:
  static sync::SyncOptions sync_options(const config::Options& options) {
    sync::SyncOptions out;
    out.node_name = options.node_name;
    out.periods.min_interval = options.min_sync_period;
    out.periods.retry_set_aside = options.sync_period;
    out.node_cidrs = options.detect_local == DetectLocalMode::NodeCidr;
    if (options.detect_local == DetectLocalMode::ClusterCidr) {
      out.cluster_cidrs = options.cluster_cidrs;
    }
    return out;
  }

  static apiserver::ReflectorOptions reflector_options(const config::Options& options) {
    apiserver::ReflectorOptions out;
    out.node_name = options.node_name;
    out.stall_timeout = options.watch_stall_timeout;
    return out;
  }

  std::unique_ptr<apiserver::Connector> connector_;
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
  auto backends = make_backends(options);
  if (!backends) {
    return tl::unexpected(backends.error());
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

  Daemon daemon(options, std::move(*connector), std::move(*backends));
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
    log::info("stopping, Services stay as they are", {kv("signal", signal)});
  }
  status.reset();
  daemon.stop();
  return outcome;
}

}  // namespace shunt::app
