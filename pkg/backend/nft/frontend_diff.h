// What the kernel holds for one frontend, and the elements that make it what the plan says. Pure.
//
// Slots are dense, 0..K-1. An endpoint that goes leaves a hole: a new endpoint takes it, else the
// last slot's endpoint moves in and the last slot goes. So one endpoint that comes or goes costs
// one or two elements, and crossing a class two more, whatever else the cluster holds. Which
// endpoint sits in which slot depends on history; which endpoints have slots does not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/nft/ruleset.h"
#include "desired/frontend.h"

namespace shunt::backend::nft {

struct FrontendState {
  std::vector<net::SocketAddress> slots;
  std::uint32_t classes = 0;       // bit n: a member of the class of 2^n slots
  std::uint64_t comment_hash = 0;  // of the element in service-ips
  bool in_service_ips = false;
  bool in_refused = false;
  bool in_dropped = false;
  bool empty() const {
    return slots.empty() && classes == 0 && !in_service_ips && !in_refused && !in_dropped;
  }
  bool operator==(const FrontendState&) const = default;
};

// A frontend with more endpoints than the largest class has slots uses the first 65536 of them.
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

// The comment of a frontend's element: the Service's name, cut so that it can never fail a
// transaction.
std::string frontend_comment(std::string_view service);
std::uint64_t comment_hash(std::string_view comment);

}  // namespace shunt::backend::nft
