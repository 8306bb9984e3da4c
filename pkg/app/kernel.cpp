#include "app/kernel.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <utility>

#include "backend/conntrack/wire.h"
#include "backend/ipvs/ipvs_backend.h"
#include "backend/leftovers/leftovers.h"
#include "backend/nft/nft_backend.h"
#include "backend/nft/wire.h"
#include "base/log.h"
#include "netlink/delivery_rule.h"

namespace shunt::app {
namespace {

using backend::ipvs::Withdrawal;
using config::DetectLocalMode;
using log::kv;

constexpr std::chrono::duration<int, std::milli> kWithdrawalPause{5'000};

bool node_has_ipv6() {
  if (::access("/proc/net/if_inet6", F_OK) != 0) {
    return false;
  }
  int disabled = 0;
  std::ifstream("/proc/sys/net/ipv6/conf/all/disable_ipv6") >> disabled;
  return disabled == 0;
}

// The mark of packets that IPVS mode delivers here, between two hooks of the kernel: a bit that
// neither kube-proxy nor the kubelet uses, and not the one that was configured for masquerading.
std::uint32_t local_mark(const config::Options& options) {
  constexpr std::uint32_t kBit = 13;
  return 1U << (options.masquerade_bit == kBit ? kBit - 1 : kBit);
}

backend::nft::ProgramSettings program_settings(const config::Options& options) {
  using Kind = backend::nft::LocalDetector::Kind;
  backend::nft::ProgramSettings settings;
  settings.local_mark = options.mode == config::Mode::Ipvs ? local_mark(options) : 0;
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
    const auto make_nft = [&](backend::nft::NftBackend::Share share) {
      return std::make_unique<backend::nft::NftBackend>(
          family,
          program_settings(options),
          std::move(transports[2 * i]),
          std::make_unique<backend::nft::AffinityPurger>(family, std::move(transports[2 * i + 1])),
          [family, own_ports] { return backend::nft::KernelChangeFeed::open(family, own_ports); },
          std::move(share));
    };
    if (options.mode != config::Mode::Ipvs) {
      backends.push_back({family, make_nft({})});
      continue;
    }
    auto kernel = backend::ipvs::open_kernel(family, local_mark(options));
    if (!kernel) {
      return tl::unexpected(kernel.error());
    }
    backends.push_back(
        {family,
         std::make_unique<backend::ipvs::IpvsBackend>(
             backend::ipvs::Settings{family, options.ipvs.scheduler, options.ipvs.exclude_cidrs},
             std::move(*kernel),
             make_nft)});
  }
  return backends;
}

Result<std::unique_ptr<Withdrawal>> open_withdrawal(const config::Options& options) {
  return Withdrawal::open({families_of_host(), options.ipvs.exclude_cidrs});
}

// All of it at once; connections that IPVS balances end.
Result<> remove_ipvs(const config::Options& options) {
  auto withdrawal = open_withdrawal(options);
  return withdrawal ? (*withdrawal)->remove_now() : tl::unexpected(withdrawal.error());
}

// kube-proxy has a device of the same name, and no rule that leads to its addresses.
bool has_ipvs_of_ours() {
  return std::ranges::any_of(families_of_host(), [](net::Family family) {
    return netlink::has_delivery_rule(family).value_or(false);
  });
}

void say(const std::vector<std::string>& whats, log::Level level, const char* message) {
  for (const std::string& what : whats) {
    log::write(level, message, {kv("what", what)});
  }
}

// True when nothing failed.
bool remove_leftovers(const backend::leftovers::RemovalOptions& how) {
  const auto report = backend::leftovers::remove_kube_proxy(how);
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
    config::Options tables = options;  // the table of either mode
    tables.mode = config::Mode::Nftables;
    auto backends = make_backends(tables);
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
    if (has_ipvs_of_ours()) {
      if (auto done = remove_ipvs(options); !done) {
        note(done.error().what);
      }
    }
    if (!options.snapshot.empty() && ::unlink(options.snapshot.c_str()) != 0 && errno != ENOENT) {
      note(options.snapshot + ": " + std::strerror(errno));
    }
  }
  const auto end_ipvs = [&] { return remove_ipvs(options); };
  if (options.cleanup_kube_proxy && !remove_leftovers({-1, end_ipvs})) {
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
  (void)remove_leftovers({stop_fd, {}});  // it has said what
}

std::unique_ptr<Withdrawal> begin_withdrawal(const config::Options& options) {
  if (options.mode == config::Mode::Ipvs || !Withdrawal::is_needed()) {
    return nullptr;
  }
  auto withdrawal = open_withdrawal(options);
  Result<> begun;
  if (withdrawal) {
    begun = (*withdrawal)->begin();
  }
  if (!withdrawal || !begun) {
    log::error(
        "connections that IPVS balances may break",
        {kv("error", withdrawal ? begun.error().what : withdrawal.error().what)});
    return nullptr;
  }
  return std::move(*withdrawal);
}

void withdraw(Withdrawal& withdrawal, int stop_fd) {
  std::string told;
  for (;;) {
    const auto progress = withdrawal.step();
    const std::string now = progress ? progress->summary() : progress.error().what;
    if (progress && progress->done) {
      log::info("nothing of IPVS is left");
      return;
    }
    for (const std::string& failure : progress ? progress->failed : std::vector<std::string>()) {
      log::warn("IPVS cannot be withdrawn yet", {kv("error", failure)});
    }
    if (std::exchange(told, now) != now) {
      log::info("connections of IPVS go on until they end", {kv("left", now)});
    }
    pollfd stop{stop_fd, POLLIN, 0};
    if (::poll(&stop, 1, kWithdrawalPause.count()) > 0) {
      return;
    }
  }
}

}  // namespace shunt::app
