// The part of the back end that removes: endpoints when their connections have ended, and servers.
#include <algorithm>

#include "backend/ipvs/ipvs_backend.h"

namespace shunt::backend::ipvs {
namespace {

using netlink::ipvs::Destination;
using What = Command::What;

// The kernel cuts the connections of a destination that it no longer has. TCP's are worth waiting
// for; a sender of UDP or SCTP would stick to one that is dead (spec/ipvs.md §6).
bool drains(net::Protocol protocol) { return protocol == net::Protocol::Tcp; }

}  // namespace

Result<> IpvsBackend::remove_reals(Run& run) {
  Commands quiet;  // no new connections
  Commands removal;
  std::set<ServerKey> counted;
  for (const auto& [key, address] : run.stages.leaving) {
    const ServerState* state = servers_.find(key);
    if (state == nullptr) {
      continue;
    }
    if (!drains(key.protocol)) {
      removal.push_back({What::RemoveReal, named(key), {address, 0}, state->owner});
      continue;
    }
    const auto real = state->reals.find(address);
    if (real != state->reals.end() && real->second != 0) {
      quiet.push_back({What::ChangeReal, named(key), {address, 0}, state->owner});
    }
    draining_[key].insert(address);
    counted.insert(key);
  }
  if (auto done = carry_out(quiet, run); !done) {
    return done;
  }
  if (auto done = carry_out(removal, run); !done) {
    return done;
  }
  // Counted only now that no new connection can come to them.
  Commands ended;
  for (const ServerKey& key : counted) {
    run.report.cost.messages += 1;
    const auto reals = kernel_->destinations(key);
    if (!reals) {
      return reals.error().code == Errc::NotFound
                 ? Result<>(fail(Errc::Stale, to_string(key) + ": " + reals.error().what))
                 : Result<>(tl::unexpected(reals.error()));
    }
    std::set<net::SocketAddress>& leaving = draining_[key];
    for (const Destination& real : *reals) {
      if (leaving.contains(real.address) && real.active_connections == 0 &&
          real.inactive_connections == 0) {
        ended.push_back({What::RemoveReal, named(key), {real.address, 0}, std::nullopt});
        leaving.erase(real.address);
      }
    }
    if (leaving.empty()) {
      draining_.erase(key);
    }
  }
  return carry_out(ended, run);
}

// Those that left earlier are looked at again when it is time.
void IpvsBackend::add_draining(Run& run) {
  const Clock::time_point now = Clock::now();
  if (now < drain_due_) {
    return;
  }
  drain_due_ = now + kDrainPeriod;
  for (const auto& [key, addresses] : draining_) {
    for (const net::SocketAddress& address : addresses) {
      run.stages.leaving.emplace_back(key, address);
    }
  }
}

Result<> IpvsBackend::remove_servers(Run& run) {
  Commands commands;
  const std::set<ServerKey> gone(run.stages.gone.begin(), run.stages.gone.end());
  for (const ServerKey& key : run.everything ? servers_.ownerless() : run.stages.gone) {
    const ServerState* state = servers_.find(key);
    // Excluded ones may be somebody else's, unless we know that we had them.
    const bool ours = gone.contains(key);
    // Which NodePorts there are is known, and where they answer may not be yet.
    const bool undecided =
        !node_ports_known_ && addresses_.host_addresses().contains(key.address.ip);
    if (state == nullptr || state->owner || undecided || (!ours && is_excluded(key.address.ip))) {
      continue;
    }
    commands.push_back({What::RemoveServer, named(key), {}, std::nullopt});
    draining_.erase(key);
  }
  return carry_out(commands, run);
}

}  // namespace shunt::backend::ipvs
