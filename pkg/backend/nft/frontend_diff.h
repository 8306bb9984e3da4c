// What the kernel holds for one frontend, and the elements that make it what the plan says. Pure.
//
// Slots are dense, 0..K-1. An endpoint that goes leaves a hole: a new endpoint takes it, else the
// last slot's endpoint moves in and the last slot goes. So one endpoint that comes or goes costs
// one or two elements, and crossing a class two more, whatever else the cluster holds. Which
// endpoint sits in which slot depends on history; which endpoints have slots does not.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/nft/ruleset.h"
#include "desired/frontend.h"
#include "net/cidr.h"

namespace shunt::backend::nft {

// The endpoints of one list.
struct SlotState {
  // In the order of slots; null: none. The plan's own list while that has this order, as after a
  // first load, so that most endpoints of the cluster are held once.
  desired::EndpointListPtr list;
  std::uint32_t classes = 0;  // bit n: a member of the class of 2^n slots
  std::span<const net::SocketAddress> slots() const {
    return list ? std::span(*list) : std::span<const net::SocketAddress>();
  }
  bool empty() const { return !list && classes == 0; }
};
bool operator==(const SlotState& a, const SlotState& b);  // by value, not by pointer

// Sets that a frontend is or is not in.
enum class Membership : std::uint8_t {
  Service,
  External,
  ExternalLocal,
  Refused,
  Dropped,
  Restricted,
  Delivered  // in IPVS mode
};
inline constexpr Membership kMemberships[] = {
    Membership::Service,
    Membership::External,
    Membership::ExternalLocal,
    Membership::Refused,
    Membership::Dropped,
    Membership::Restricted,
    Membership::Delivered};

// What few frontends have.
struct Extras {
  std::vector<net::IpRange> sources;  // in allowed-sources; sorted
  // Chains that the frontend's elements in sticky-*, sticky-local-* and remember-* lead to.
  std::string sticky;
  std::string sticky_local;
  std::string remember;
  bool operator==(const Extras&) const = default;
};

struct FrontendState {
  SlotState endpoints;
  SlotState local_endpoints;
  std::uint64_t comment_hash = 0;  // of the element in service-ips; NodePorts too
  std::uint8_t members = 0;        // bits by Membership
  std::unique_ptr<Extras> extras;  // null: none of it

  FrontendState() = default;
  FrontendState(const FrontendState& other);
  FrontendState& operator=(const FrontendState& other);
  FrontendState(FrontendState&&) = default;
  FrontendState& operator=(FrontendState&&) = default;
  ~FrontendState() = default;

  SlotState& of(Place place) { return is_local(place) ? local_endpoints : endpoints; }
  bool is(Membership membership) const;
  void set(Membership membership, bool member);
  bool empty() const;
  Extras& more();  // made when there is none
};
bool operator==(const FrontendState& a, const FrontendState& b);

// A list with more endpoints than the largest class has slots uses the first 65536 of them.
inline constexpr std::size_t kMaxSlots = std::size_t{1} << kLargestClassBits;

// The class of `slots` endpoints: the exponent of the next power of two, at least two. `slots`
// is 1..kMaxSlots.
unsigned class_bits(std::size_t slots);

// Appends the changes that turn `from` into what `plan` wants (null: nothing) and returns the state
// after them.
FrontendState diff_frontend(
    const desired::FrontendKey& key,
    const FrontendState& from,
    const desired::FrontendPlan* plan,
    ElementChanges& changes);

// The same for the endpoints alone: no class leads to them, so no packet sees them yet.
FrontendState diff_slots(
    const desired::FrontendKey& key,
    const FrontendState& from,
    const desired::FrontendPlan* plan,
    ElementChanges& changes);

// In IPVS mode: whether packets to the frontend are delivered to IPVS. `state` is what
// diff_frontend() returned.
void diff_delivery(
    const desired::FrontendKey& key, FrontendState& state, bool wanted, ElementChanges& changes);

// The chains that a plan's elements lead to; empty where there are none.
Extras wanted_extras(const desired::FrontendKey& key, const desired::FrontendPlan* plan);

// The set of a membership or a verdict map for this kind of frontend; None where it has none.
SetId set_of(Membership membership, bool node_port);

// The comment of a frontend's element: the Service's name, cut so that it can never fail a
// transaction.
std::string frontend_comment(std::string_view service);
std::uint64_t comment_hash(std::string_view comment);

}  // namespace shunt::backend::nft
