#include "app/kernel.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "backend/conntrack/wire.h"
#include "backend/iptables/iptables_backend.h"
#include "backend/iptables/probe.h"
#include "backend/iptables/variant.h"
#include "backend/ipvs/ipvs_backend.h"
#include "backend/leftovers/leftovers.h"
#include "backend/leftovers/wire.h"
#include "backend/nft/nft_backend.h"
#include "backend/nft/probe.h"
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

backend::LocalDetector detector(const config::Options& options) {
  using Kind = backend::LocalDetector::Kind;
  switch (options.detect_local) {
    case DetectLocalMode::ClusterCidr:
    case DetectLocalMode::NodeCidr:
      return {Kind::SourceRange, {}};
    case DetectLocalMode::BridgeInterface:
      return {Kind::InputInterface, options.bridge_interface};
    case DetectLocalMode::InterfaceNamePrefix:
      return {Kind::InputInterfacePrefix, options.interface_name_prefix};
  }
  return {};
}

backend::nft::ProgramSettings program_settings(const config::Options& options) {
  backend::nft::ProgramSettings settings;
  settings.local_mark = options.mode == config::Mode::Ipvs ? local_mark(options) : 0;
  settings.masquerade_mark = 1U << options.masquerade_bit;
  settings.masquerade_all = options.masquerade_all;
  settings.drop_invalid = !options.conntrack.tcp_be_liberal;
  settings.detector = detector(options);
  return settings;
}

backend::iptables::FrameSettings frame_settings(
    const config::Options& options, net::Family family) {
  return {
      family,
      1U << options.masquerade_bit,
      !options.conntrack.tcp_be_liberal,
      options.route_localnet && family == net::Family::IPv4};
}

backend::iptables::VariantKind variant_of(const config::Options& options) {
  return options.iptables_variant == config::IptablesVariant::Legacy
             ? backend::iptables::VariantKind::Legacy
             : backend::iptables::VariantKind::Nft;
}

Result<std::vector<sync::FamilyBackend>> make_iptables_backends(const config::Options& options) {
  std::vector<sync::FamilyBackend> backends;
  for (const net::Family family : families_of_host()) {
    auto tables = backend::iptables::open_tables(variant_of(options), family);
    if (!tables) {
      return tl::unexpected(tables.error());
    }
    backends.push_back(
        {family,
         std::make_unique<backend::iptables::IptablesBackend>(
             backend::iptables::Settings{
                 frame_settings(options, family),
                 detector(options),
                 options.masquerade_all,
                 options.sync_period},
             std::move(*tables))});
  }
  return backends;
}

Result<std::vector<sync::FamilyBackend>> make_backends(const config::Options& options) {
  if (options.mode == config::Mode::Iptables) {
    return make_iptables_backends(options);
  }
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

// Those of the nftables mode and of the IPVS mode, in a mode that has others.
void remove_own_tables() {
  auto wire = backend::leftovers::Wire::open();
  for (const net::Family family : families_of_host()) {
    const auto gone =
        wire ? (*wire)->delete_nft_table(family, "kube-shunt") : tl::unexpected(wire.error());
    if (!gone && gone.error().code == Errc::Unsupported) {
      continue;  // a kernel without nf_tables
    }
    if (!gone) {
      log::error(
          "the table of another mode could not be removed",
          {kv("family", net::to_string(family)), kv("error", gone.error().what)});
    } else if (*gone) {
      log::info("removed the table of another mode", {kv("family", net::to_string(family))});
    }
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

Result<> settle_iptables_variant(config::Options& options) {
  if (options.mode != config::Mode::Iptables) {
    return {};
  }
  if (options.iptables_variant != config::IptablesVariant::Auto) {
    log::info(
        "iptables chosen",
        {kv("why",
            options.iptables_variant == config::IptablesVariant::Nft
                ? "the nft variant: as configured"
                : "the legacy variant: as configured")});
    return {};
  }
  const auto evidence = backend::iptables::gather_evidence();
  if (!evidence) {
    return fail(
        "cannot tell which iptables this host uses (kubeShunt.iptablesVariant can say it)",
        evidence.error());
  }
  const backend::iptables::Choice choice = backend::iptables::choose_variant(*evidence);
  options.iptables_variant = choice.kind == backend::iptables::VariantKind::Nft
                                 ? config::IptablesVariant::Nft
                                 : config::IptablesVariant::Legacy;
  log::info("iptables chosen", {kv("why", choice.why)});
  return {};
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
  if (options.mode == config::Mode::Iptables) {
    for (const net::Family family : families_of_host()) {
      auto tables = backend::iptables::open_tables(variant_of(options), family);
      if (!tables) {
        return tl::unexpected(tables.error());
      }
      probes.emplace(
          family,
          std::make_unique<backend::iptables::Probe>(
              frame_settings(options, family), std::move(*tables)));
    }
    return probes;
  }
  for (const net::Family family : families_of_host()) {
    auto probe = backend::nft::Probe::open(family, program_settings(options));
    if (!probe) {
      return tl::unexpected(probe.error());
    }
    probes.emplace(family, std::move(*probe));
  }
  return probes;
}

namespace {

// What could not be done, in one line.
class Failures {
 public:
  void note(std::string_view what) { text_.append(text_.empty() ? "" : "; ").append(what); }
  Result<> result() const { return text_.empty() ? Result<>{} : fail(Errc::Denied, text_); }

 private:
  std::string text_;
};

void remove_rules_of(
    config::Mode mode,
    config::Options options,
    const std::vector<net::Family>& families,
    Failures& failures) {
  options.mode = mode;
  auto backends = make_backends(options);
  if (!backends) {
    if (backends.error().code != Errc::Unsupported) {  // a kernel without it has nothing of it
      failures.note(backends.error().what);
    }
    return;
  }
  const auto name = config::name_of_back_end(mode);
  for (const sync::FamilyBackend& one : *backends) {
    if (std::ranges::find(families, one.family) == families.end()) {
      continue;
    }
    if (auto done = one.backend->cleanup(); !done) {
      failures.note(fmt::format("{}, {}: {}", name, net::to_string(one.family), done.error().what));
    } else {
      log::info(
          "nothing of ours is left",
          {kv("back_end", name), kv("family", net::to_string(one.family))});
    }
  }
}

// Chains of iptables have kube-proxy's names: they are ours where that is the mode, and where
// kube-proxy has not left its mark.
void remove_iptables_rules(config::Options options, Failures& failures) {
  using Kind = backend::iptables::VariantKind;
  const auto found = backend::iptables::find_our_rules();
  say(found.unknown, log::Level::Warn, "cannot tell whether rules of ours are there");
  std::optional<Kind> configured;
  if (options.mode == config::Mode::Iptables) {
    if (auto settled = settle_iptables_variant(options); settled) {
      configured = variant_of(options);
    } else {
      failures.note(settled.error().what);
    }
  }
  for (const Kind kind : {Kind::Nft, Kind::Legacy}) {
    std::vector<net::Family> families;
    for (const auto& variant : found.variants) {
      if (variant.kind == kind) {
        families.push_back(variant.family);
      }
    }
    if (kind == configured) {
      families = families_of_host();
    }
    if (!families.empty()) {
      options.iptables_variant =
          kind == Kind::Nft ? config::IptablesVariant::Nft : config::IptablesVariant::Legacy;
      remove_rules_of(config::Mode::Iptables, options, families, failures);
    }
  }
}

void remove_what_is_ours(const config::Options& options, Failures& failures) {
  remove_rules_of(
      config::Mode::Nftables, options, families_of_host(), failures);  // in mode ipvs, too
  remove_iptables_rules(options, failures);
  if (has_ipvs_of_ours()) {
    if (auto done = remove_ipvs(options); !done) {
      failures.note(done.error().what);
    }
  }
  if (!options.snapshot.empty() && ::unlink(options.snapshot.c_str()) != 0 && errno != ENOENT) {
    failures.note(options.snapshot + ": " + std::strerror(errno));
  }
}

}  // namespace

Result<> clean_up(const config::Options& options) {
  Failures failures;
  if (options.cleanup) {
    remove_what_is_ours(options, failures);
  }
  const auto end_ipvs = [&] { return remove_ipvs(options); };
  if (options.cleanup_kube_proxy && !remove_leftovers({-1, end_ipvs, {}})) {
    failures.note("something of kube-proxy could not be removed");
  }
  return failures.result();
}

void take_over(const config::Options& options, int stop_fd) {
  std::optional<backend::iptables::VariantKind> ours;
  if (options.mode == config::Mode::Iptables) {
    ours = variant_of(options);
    remove_own_tables();
  }
  const auto found = backend::leftovers::find_kube_proxy(ours);
  say(found.unknown, log::Level::Debug, "cannot tell whether kube-proxy left something");
  if (!found.any()) {
    return;
  }
  log::info(
      "kube-proxy has rules on this node, ours take over",
      {kv("nftables", found.nftables), kv("iptables", found.iptables), kv("ipvs", found.ipvs)});
  (void)remove_leftovers({stop_fd, {}, ours});  // it has said what
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
