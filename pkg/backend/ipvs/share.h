// What of a plan is whose: IPVS balances, the nftables program of IPVS mode does the rest. Pure.
//
// IPVS has one list of destinations a virtual server, so what needs two lists or a memory that IPVS
// cannot keep is translated by the nftables program before IPVS would see it (README.md):
// - session affinity: the persistence of IPVS outlives its timeout while connections of the client
//   are remembered, and addresses of a Service cannot share it;
// - the short cut of pods and the node to a frontend of externalTrafficPolicy Local.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "desired/frontend.h"

namespace shunt::backend::ipvs {

struct Real {
  net::SocketAddress address;
  std::uint32_t weight = 1;
  auto operator<=>(const Real&) const = default;
};

// What the virtual servers of a frontend have in common.
struct Balancing {
  std::string scheduler;
  std::uint32_t flags = 0;         // netlink::ipvs::kPersistent, kHashPort
  std::chrono::seconds timeout{};  // of persistence
  std::vector<Real> reals;         // sorted
  bool operator==(const Balancing&) const = default;
};

// `scheduler`: the configured one, or what stands for it.
Balancing balancing_of(const desired::FrontendPlan& plan, const std::string& scheduler);

// The plan as the nftables program is to carry it out: without the endpoints that are for IPVS.
desired::FrontendPlan nftables_share(const desired::FrontendPlan& plan);

}  // namespace shunt::backend::ipvs
