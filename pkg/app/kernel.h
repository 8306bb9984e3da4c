// The kernel's side of the daemon, as the options want it: a back end for each address family, who
// removes stale UDP flows, probes that look at the tables from outside, and the end of what another
// mode or another program left.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "backend/conntrack/reconciler.h"
#include "backend/ipvs/withdrawal.h"
#include "backend/probe.h"
#include "base/result.h"
#include "config/options.h"
#include "sync/sync_loop.h"

namespace shunt::app {

struct Kernel {
  std::vector<sync::FamilyBackend> backends;
  std::unique_ptr<backend::conntrack::Reconciler> reconciler;
};

// IPv4, and IPv6 where the host has it (spec/config.md §6).
std::vector<net::Family> families_of_host();

// In the iptables mode: puts in the place of Auto the variant that this host uses, and logs which
// and why. To be called before the functions below, once for all of them.
Result<> settle_iptables_variant(config::Options& options);

Result<Kernel> open_kernel(
    const config::Options& options, backend::conntrack::Reconciler::OnPass on_pass);

using Probes = std::map<net::Family, std::unique_ptr<backend::Probe>>;
Result<Probes> open_probes(const config::Options& options);

// --cleanup: every table of ours, of both families, and the snapshot; --cleanup-kube-proxy: what
// kube-proxy left. Does as much as it can; the error names what it could not.
Result<> clean_up(const config::Options& options);

// Removes kube-proxy's rules if there are any, and ours of another mode, once those of this mode
// are in force, and says what went. Blocks for as long as iptables takes; `stop_fd` ends it.
void take_over(const config::Options& options, int stop_fd);

// IPVS balanced here, for kube-proxy or for us, and is not to any more: before anything else is
// written its connections are secured. Null when there is nothing of the kind, or IPVS goes on.
std::unique_ptr<backend::ipvs::Withdrawal> begin_withdrawal(const config::Options& options);
// The rest, once ours is in force: until the last connection has ended, or `stop_fd` is readable.
void withdraw(backend::ipvs::Withdrawal& withdrawal, int stop_fd);

}  // namespace shunt::app
