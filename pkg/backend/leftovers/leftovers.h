// What kube-proxy leaves in the kernel when it ends, and its removal: for --cleanup-kube-proxy, and
// for the take-over at start. README.md says what is removed and what stays.
//
// Both functions work on the network namespace of the calling thread, keep no state, and block it:
// any thread, but not one that packets wait for.
//
// Connections that are established go on: conntrack entries are not touched, and a translated
// connection does not look at nat rules again. But the kernel tracks and translates only as long as
// anybody's rules ask for it, so ours must be there first.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/leftovers/iptables_tool.h"
#include "base/result.h"

namespace shunt::backend::leftovers {

struct Found {
  bool nftables = false;
  bool iptables = false;             // chains of the iptables mode or the IPVS mode
  bool ipvs = false;                 // its link, unless that is kube-shunt's; or its sets
  std::vector<std::string> unknown;  // what could not be looked at, and why
  bool any() const { return nftables || iptables || ipvs; }
};

// A few milliseconds; changes nothing. `ours`: the variant of iptables in which kube-shunt's own
// iptables mode works, whose chains have kube-proxy's names.
Found find_kube_proxy(std::optional<Variant::Kind> ours = std::nullopt);

struct Report {
  std::vector<std::string> removed;
  std::vector<std::string> left;    // and why: somebody else's, or no tool for it
  std::vector<std::string> failed;  // what should have gone
  bool ok() const { return failed.empty(); }
};

struct RemovalOptions {
  int stop_fd = -1;  // readable: give up (see base/subprocess.h)
  // Takes virtual servers and kube-ipvs0 away, which ends the connections that IPVS balances
  // (ipvs::Withdrawal::remove_now). Without it they stay: a daemon in the nftables mode lets their
  // connections end first, and one in the IPVS mode goes on with them.
  std::function<Result<>()> remove_ipvs = nullptr;
  std::optional<Variant::Kind> ours = std::nullopt;  // as for find_kube_proxy()
};

// Does as much as it can; a failure stops nothing else. What is written at once (a table) goes
// whole or stays whole. A second call finds nothing to do. Ours must be programmed first: between
// kube-proxy's rules and ours new connections would fail.
Report remove_kube_proxy(const RemovalOptions& options = {});

}  // namespace shunt::backend::leftovers
