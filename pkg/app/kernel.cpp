#include "app/kernel.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "backend/conntrack/wire.h"
#include "backend/leftovers/leftovers.h"
#include "backend/nft/nft_backend.h"
#include "backend/nft/wire.h"
#include "base/log.h"

namespace shunt::app {
namespace {

using config::DetectLocalMode;
using log::kv;

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
  const std::vector<net::Family> families = families_of_host();
  using Transport = std::unique_ptr<backend::nft::KernelTransport>;
  std::vector<Transport> transports;  // two a family
  std::vector<std::uint32_t> own_ports;
  for (std::size_t i = 0; i < 2 * families.size(); ++i) {
    auto transport = backend::nft::KernelTransport::open();
    if (!transport) {
      return fail("nftables", transport.error());
    }
    own_ports.push_back((*transport)->port());
    transports.push_back(std::move(*transport));
  }
  std::vector<sync::FamilyBackend> backends;
  for (std::size_t i = 0; i < families.size(); ++i) {
    const net::Family family = families[i];
    backends.push_back(
        {family,
         std::make_unique<backend::nft::NftBackend>(
             family,
             program_settings(options),
             std::move(transports[2 * i]),
             std::make_unique<backend::nft::AffinityPurger>(
                 family, std::move(transports[2 * i + 1])),
             [family, own_ports] {
               return backend::nft::KernelChangeFeed::open(family, own_ports);
             })});
  }
  return backends;
}

void say(const std::vector<std::string>& whats, log::Level level, const char* message) {
  for (const std::string& what : whats) {
    log::write(level, message, {kv("what", what)});
  }
}

// True when nothing failed.
bool remove_leftovers(int stop_fd) {
  const auto report = backend::leftovers::remove_kube_proxy({stop_fd});
  say(report.removed, log::Level::Info, "removed what kube-proxy left");
  say(report.left, log::Level::Warn, "something of kube-proxy stays");
  say(report.failed, log::Level::Error, "something of kube-proxy could not be removed");
  return report.ok();
}

}  // namespace

std::vector<net::Family> families_of_host() {
  std::vector<net::Family> families{net::Family::IPv4};
  if (node_has_ipv6()) {
    families.push_back(net::Family::IPv6);
  }
  return families;
}

Result<Kernel> open_kernel(
    const config::Options& options, backend::conntrack::Reconciler::OnPass on_pass) {
  Kernel kernel;
  auto backends = make_backends(options);
  if (!backends) {
    return tl::unexpected(backends.error());
  }
  kernel.backends = std::move(*backends);
  auto table = backend::conntrack::KernelFlowTable::open();
  if (!table) {
    return tl::unexpected(table.error());
  }
  kernel.reconciler = std::make_unique<backend::conntrack::Reconciler>(
      std::move(*table), seeded_random(), std::move(on_pass));
  return kernel;
}

Result<Probes> open_probes(const config::Options& options) {
  Probes probes;
  for (const net::Family family : families_of_host()) {
    auto probe = backend::nft::Probe::open(family, program_settings(options));
    if (!probe) {
      return tl::unexpected(probe.error());
    }
    probes.emplace(family, std::move(*probe));
  }
  return probes;
}

Result<> clean_up(const config::Options& options) {
  std::string failures;
  const auto note = [&](const std::string& what) {
    failures.append(failures.empty() ? "" : "; ").append(what);
  };
  if (options.cleanup) {
    auto backends = make_backends(options);
    if (!backends) {
      return tl::unexpected(backends.error());
    }
    for (const sync::FamilyBackend& one : *backends) {
      if (auto done = one.backend->cleanup(); !done) {
        note(std::string(net::to_string(one.family)) + " table: " + done.error().what);
      } else {
        log::info("nothing of ours is left", {kv("family", net::to_string(one.family))});
      }
    }
    if (!options.snapshot.empty() && ::unlink(options.snapshot.c_str()) != 0 && errno != ENOENT) {
      note(options.snapshot + ": " + std::strerror(errno));
    }
  }
  if (options.cleanup_kube_proxy && !remove_leftovers(-1)) {
    note("something of kube-proxy could not be removed");
  }
  if (!failures.empty()) {
    return fail(Errc::Denied, failures);
  }
  return {};
}

void take_over_from_kube_proxy(int stop_fd) {
  const auto found = backend::leftovers::find_kube_proxy();
  say(found.unknown, log::Level::Debug, "cannot tell whether kube-proxy left something");
  if (!found.any()) {
    return;
  }
  log::info(
      "kube-proxy has rules on this node, ours take over",
      {kv("nftables", found.nftables), kv("iptables", found.iptables), kv("ipvs", found.ipvs)});
  (void)remove_leftovers(stop_fd);  // it has said what
}

}  // namespace shunt::app
