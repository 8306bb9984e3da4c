#include "backend/nft/frontend_diff.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "backend/nft/affinity.h"
#include "backend/nft/keys.h"
#include "backend/nft/range_difference.h"
#include "backend/nft/wire_rules.h"
#include "base/fnv1a.h"

namespace shunt::backend::nft {
namespace {

using Slots = std::vector<net::SocketAddress>;

Element key_only(const desired::FrontendKey& key) {
  return Element{encode(key), {}, false, {}, false};
}

class SlotWriter {
 public:
  SlotWriter(const desired::FrontendKey& key, SetId map, ElementChanges& changes)
      : key_(key), map_(map), changes_(changes) {}

  void remove(std::size_t slot) {
    changes_.remove(
        map_, {encode_slot(key_, static_cast<std::uint32_t>(slot)), {}, false, {}, false});
  }
  void add(std::size_t slot, const net::SocketAddress& endpoint) {
    changes_.add(
        map_,
        {encode_slot(key_, static_cast<std::uint32_t>(slot)),
         encode_data(endpoint),
         false,
         {},
         false});
  }
  void replace(std::size_t slot, const net::SocketAddress& endpoint) {
    remove(slot);
    add(slot, endpoint);
  }

 private:
  const desired::FrontendKey& key_;
  SetId map_;
  ElementChanges& changes_;
};

// `wanted` is sorted and without duplicates.
void fill_slots(Slots& slots, std::span<const net::SocketAddress> wanted, SlotWriter writer) {
  // Which wanted endpoints have a slot; a second slot of the same endpoint is a hole.
  std::vector<bool> placed(wanted.size(), false);
  std::vector<std::size_t> holes;  // ascending
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    const auto at = std::lower_bound(wanted.begin(), wanted.end(), slots[slot]);
    const auto index = static_cast<std::size_t>(at - wanted.begin());
    if (at != wanted.end() && *at == slots[slot] && !placed[index]) {
      placed[index] = true;
    } else {
      holes.push_back(slot);
    }
  }
  slots.reserve(std::max(slots.size(), wanted.size()));  // no room beyond: there are many of these
  std::size_t next_hole = 0;
  for (std::size_t index = 0; index < wanted.size(); ++index) {
    if (placed[index]) {
      continue;
    }
    if (next_hole < holes.size()) {
      const std::size_t slot = holes[next_hole++];
      writer.replace(slot, wanted[index]);
      slots[slot] = wanted[index];
    } else {
      writer.add(slots.size(), wanted[index]);
      slots.push_back(wanted[index]);
    }
  }
  // The holes that are left: the last slots move into the first of them.
  std::size_t last_hole = holes.size();
  while (next_hole < last_hole) {
    const std::size_t last = slots.size() - 1;
    if (holes[last_hole - 1] == last) {
      --last_hole;
    } else {
      const std::size_t slot = holes[next_hole++];
      writer.replace(slot, slots[last]);
      slots[slot] = slots[last];
    }
    writer.remove(last);
    slots.pop_back();
  }
}

void diff_member(
    SetId set, const desired::FrontendKey& key, bool member, bool wanted, ElementChanges& changes) {
  if (wanted && !member) {
    changes.add(set, key_only(key));
  } else if (member && !wanted) {
    changes.remove(set, key_only(key));
  }
}

std::span<const net::SocketAddress> usable(const desired::EndpointListPtr& list) {
  std::span<const net::SocketAddress> all;
  if (list) {
    all = *list;
  }
  return all.first(std::min(all.size(), kMaxSlots));
}

// Gives every endpoint of the list a slot.
void place(
    const desired::FrontendKey& key,
    SlotState& state,
    const desired::EndpointListPtr& list,
    Place of,
    ElementChanges& changes) {
  if (state.list == list && (!list || list->size() <= kMaxSlots)) {
    return;
  }
  const auto now = state.slots();
  Slots slots(now.begin(), now.end());
  fill_slots(slots, usable(list), SlotWriter(key, slot_map(of), changes));
  if (slots.empty()) {
    state.list = nullptr;
  } else if (list && slots == *list) {
    state.list = list;
  } else {
    state.list = std::make_shared<const desired::EndpointList>(std::move(slots));
  }
}

// The class of its slots.
void diff_class(
    const desired::FrontendKey& key, SlotState& state, Place of, ElementChanges& changes) {
  const std::uint32_t classes = state.list ? 1U << class_bits(state.list->size()) : 0;
  if (state.classes == classes) {
    return;
  }
  for (unsigned bits = kSmallestClassBits; bits <= kLargestClassBits; ++bits) {
    const bool member = (state.classes >> bits & 1U) != 0;
    diff_member(class_set(of, bits), key, member, (classes >> bits & 1U) != 0, changes);
  }
  state.classes = classes;
}

bool is_wanted(Membership membership, const desired::FrontendPlan& plan) {
  switch (membership) {
    case Membership::Service:
      return true;
    case Membership::External:
      return plan.reach == desired::Reach::External;
    case Membership::ExternalLocal:
      return plan.reach == desired::Reach::ExternalLocal;
    case Membership::Refused:
      return plan.fate == desired::Fate::Refuse;
    case Membership::Dropped:
      return plan.fate == desired::Fate::Drop;
    case Membership::Restricted:
      return plan.sources != nullptr;
    case Membership::Delivered:
      return false;  // diff_delivery
  }
  return false;
}

void diff_memberships(
    const desired::FrontendKey& key,
    FrontendState& state,
    const desired::FrontendPlan* plan,
    ElementChanges& changes) {
  const bool node_port = desired::is_node_port(key);
  for (const Membership membership : kMemberships) {
    const SetId set = set_of(membership, node_port);
    if (set == SetId::None || membership == Membership::Service ||
        membership == Membership::Delivered) {
      continue;  // the element of a Service has a comment: diff_service; and diff_delivery
    }
    const bool wanted = plan != nullptr && is_wanted(membership, *plan);
    diff_member(set, key, state.is(membership), wanted, changes);
    state.set(membership, wanted);
  }
}

void diff_service(
    const desired::FrontendKey& key,
    FrontendState& state,
    const desired::FrontendPlan* plan,
    ElementChanges& changes) {
  const SetId set = set_of(Membership::Service, desired::is_node_port(key));
  const std::string comment = plan == nullptr ? std::string() : frontend_comment(plan->service);
  const std::uint64_t hash = plan == nullptr ? 0 : comment_hash(comment);
  // Another Service that took the frontend over: its name and its own count of connections.
  const bool member = state.is(Membership::Service);
  if (member && (plan == nullptr || state.comment_hash != hash)) {
    changes.remove(set, key_only(key));
  }
  if (plan != nullptr && (!member || state.comment_hash != hash)) {
    changes.add(set, {encode(key), {}, false, comment, false});
  }
  state.set(Membership::Service, plan != nullptr);
  state.comment_hash = hash;
}

void diff_sources(
    const desired::FrontendKey& key,
    const std::vector<net::IpRange>& now,
    const std::vector<net::IpRange>& wanted,
    ElementChanges& changes) {
  range_difference(
      now,
      wanted,
      [&](const auto& range) { changes.remove(SetId::AllowedSources, source_element(key, range)); },
      [&](const auto& range) { changes.add(SetId::AllowedSources, source_element(key, range)); });
}

void diff_verdict(
    SetId set,
    const desired::FrontendKey& key,
    const std::string& now,
    const std::string& wanted,
    bool jump,
    ElementChanges& changes) {
  if (now == wanted) {
    return;
  }
  if (!now.empty()) {
    changes.remove(set, key_only(key));
  }
  if (!wanted.empty()) {
    changes.add(set, {encode(key), {}, false, wanted, jump});
  }
}

void diff_extras(
    const desired::FrontendKey& key,
    FrontendState& state,
    const desired::FrontendPlan* plan,
    ElementChanges& changes) {
  Extras wanted = wanted_extras(key, plan);
  static const Extras none;
  const Extras& now = state.extras ? *state.extras : none;
  if (now == wanted) {
    return;
  }
  const bool node_port = desired::is_node_port(key);
  diff_sources(key, now.sources, wanted.sources, changes);
  diff_verdict(
      node_port ? SetId::StickyNodePorts : SetId::StickyIps,
      key,
      now.sticky,
      wanted.sticky,
      true,
      changes);
  diff_verdict(
      node_port ? SetId::StickyLocalNodePorts : SetId::StickyLocalIps,
      key,
      now.sticky_local,
      wanted.sticky_local,
      true,
      changes);
  diff_verdict(
      node_port ? SetId::RememberNodePorts : SetId::RememberIps,
      key,
      now.remember,
      wanted.remember,
      false,
      changes);
  state.extras = wanted == none ? nullptr : std::make_unique<Extras>(std::move(wanted));
}

}  // namespace

FrontendState::FrontendState(const FrontendState& other)
    : endpoints(other.endpoints),
      local_endpoints(other.local_endpoints),
      comment_hash(other.comment_hash),
      members(other.members),
      extras(other.extras ? std::make_unique<Extras>(*other.extras) : nullptr) {}
FrontendState& FrontendState::operator=(const FrontendState& other) {
  return *this = FrontendState(other);
}

bool FrontendState::is(Membership membership) const {
  return (members >> static_cast<unsigned>(membership) & 1U) != 0;
}
void FrontendState::set(Membership membership, bool member) {
  const auto bit = static_cast<std::uint8_t>(1U << static_cast<unsigned>(membership));
  members = static_cast<std::uint8_t>(member ? members | bit : members & ~bit);
}
bool FrontendState::empty() const {
  return members == 0 && endpoints.empty() && local_endpoints.empty() && !extras;
}
Extras& FrontendState::more() {
  if (!extras) {
    extras = std::make_unique<Extras>();
  }
  return *extras;
}
bool operator==(const SlotState& a, const SlotState& b) {
  return a.classes == b.classes && std::ranges::equal(a.slots(), b.slots());
}
bool operator==(const FrontendState& a, const FrontendState& b) {
  static const Extras none;
  return a.endpoints == b.endpoints && a.local_endpoints == b.local_endpoints &&
         a.comment_hash == b.comment_hash && a.members == b.members &&
         (a.extras ? *a.extras : none) == (b.extras ? *b.extras : none);
}

SetId set_of(Membership membership, bool node_port) {
  switch (membership) {
    case Membership::Service:
      return node_port ? SetId::ServiceNodePorts : SetId::ServiceIps;
    case Membership::External:
      return node_port ? SetId::ExternalNodePorts : SetId::ExternalIps;
    case Membership::ExternalLocal:
      return node_port ? SetId::ExternalLocalNodePorts : SetId::ExternalLocalIps;
    case Membership::Refused:
      return node_port ? SetId::RefusedNodePorts : SetId::RefusedIps;
    case Membership::Dropped:
      return node_port ? SetId::DroppedNodePorts : SetId::DroppedIps;
    case Membership::Restricted:  // source ranges are for balancer addresses
      return node_port ? SetId::None : SetId::RestrictedIps;
    case Membership::Delivered:  // the node's own addresses are its own anyway
      return node_port ? SetId::None : SetId::IpvsIps;
  }
  return SetId::None;
}

Extras wanted_extras(const desired::FrontendKey& key, const desired::FrontendPlan* plan) {
  Extras out;
  if (plan == nullptr) {
    return out;
  }
  if (plan->sources && !desired::is_node_port(key)) {
    out.sources = net::merged_ranges(*plan->sources);
  }
  if (const auto affinity = affinity_of(*plan)) {
    if (plan->endpoints) {
      out.sticky = sticky_chain(*affinity, affinity->local_policy);
    }
    if (plan->local_endpoints) {
      out.sticky_local = sticky_chain(*affinity, true);
    }
    out.remember = remember_chain(*affinity);
  }
  return out;
}

unsigned class_bits(std::size_t slots) {
  const auto bits = static_cast<unsigned>(std::bit_width(slots - 1));
  return std::clamp(bits, kSmallestClassBits, kLargestClassBits);
}

std::string frontend_comment(std::string_view service) {
  std::string comment(service.substr(0, kMaxComment));
  // The API admits none of these; what reads a listing would stumble over a quote or a line break.
  std::replace_if(
      comment.begin(),
      comment.end(),
      [](char c) { return c <= ' ' || c > '~' || c == '"' || c == '\\'; },
      '?');
  return comment;
}

std::uint64_t comment_hash(std::string_view comment) {
  Fnv1a hash;
  hash.bytes(comment);
  return hash.value();
}

FrontendState diff_frontend(
    const desired::FrontendKey& key,
    const FrontendState& from,
    const desired::FrontendPlan* plan,
    ElementChanges& changes) {
  FrontendState state = diff_slots(key, from, plan, changes);
  const bool node_port = desired::is_node_port(key);
  diff_class(key, state.endpoints, place_of(node_port, false), changes);
  diff_class(key, state.local_endpoints, place_of(node_port, true), changes);
  diff_service(key, state, plan, changes);
  diff_memberships(key, state, plan, changes);
  diff_extras(key, state, plan, changes);
  return state;
}

void diff_delivery(
    const desired::FrontendKey& key, FrontendState& state, bool wanted, ElementChanges& changes) {
  diff_member(SetId::IpvsIps, key, state.is(Membership::Delivered), wanted, changes);
  state.set(Membership::Delivered, wanted);
}

FrontendState diff_slots(
    const desired::FrontendKey& key,
    const FrontendState& from,
    const desired::FrontendPlan* plan,
    ElementChanges& changes) {
  FrontendState state = from;
  const bool node_port = desired::is_node_port(key);
  place(
      key,
      state.endpoints,
      plan == nullptr ? nullptr : plan->endpoints,
      place_of(node_port, false),
      changes);
  place(
      key,
      state.local_endpoints,
      plan == nullptr ? nullptr : plan->local_endpoints,
      place_of(node_port, true),
      changes);
  return state;
}

}  // namespace shunt::backend::nft
