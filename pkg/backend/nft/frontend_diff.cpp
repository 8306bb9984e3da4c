#include "backend/nft/frontend_diff.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "backend/nft/keys.h"
#include "backend/nft/wire_rules.h"
#include "base/fnv1a.h"

namespace shunt::backend::nft {
namespace {

using Slots = std::vector<net::SocketAddress>;

Element key_only(const desired::FrontendKey& key) { return Element{encode(key), {}, false, {}}; }

class SlotWriter {
 public:
  SlotWriter(const desired::FrontendKey& key, ElementChanges& changes)
      : key_(key), changes_(changes) {}

  void remove(std::size_t slot) {
    changes_.remove(
        SetId::Endpoints, {encode_slot(key_, static_cast<std::uint32_t>(slot)), {}, false, {}});
  }
  void add(std::size_t slot, const net::SocketAddress& endpoint) {
    changes_.add(
        SetId::Endpoints,
        {encode_slot(key_, static_cast<std::uint32_t>(slot)), encode_data(endpoint), false, {}});
  }
  void replace(std::size_t slot, const net::SocketAddress& endpoint) {
    remove(slot);
    add(slot, endpoint);
  }

 private:
  const desired::FrontendKey& key_;
  ElementChanges& changes_;
};

// `wanted` is sorted and without duplicates.
void diff_slots(Slots& slots, std::span<const net::SocketAddress> wanted, SlotWriter writer) {
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
    SetId set,
    const desired::FrontendKey& key,
    bool& member,
    bool wanted,
    ElementChanges& changes) {
  if (member == wanted) {
    return;
  }
  if (wanted) {
    changes.add(set, key_only(key));
  } else {
    changes.remove(set, key_only(key));
  }
  member = wanted;
}

}  // namespace

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
  using desired::Fate;
  FrontendState state = from;
  const bool balance = plan != nullptr && plan->fate == Fate::Balance;
  std::span<const net::SocketAddress> wanted;
  if (balance) {
    wanted = *plan->endpoints;
    wanted = wanted.first(std::min(wanted.size(), kMaxSlots));
  }
  diff_slots(state.slots, wanted, SlotWriter(key, changes));

  const std::uint32_t classes = wanted.empty() ? 0 : 1U << class_bits(wanted.size());
  for (unsigned bits = kSmallestClassBits; bits <= kLargestClassBits; ++bits) {
    bool member = (state.classes >> bits & 1U) != 0;
    diff_member(class_set(bits), key, member, (classes >> bits & 1U) != 0, changes);
  }
  state.classes = classes;

  const std::string comment = plan == nullptr ? std::string() : frontend_comment(plan->service);
  const std::uint64_t hash = comment_hash(comment);
  if (state.in_service_ips && plan != nullptr && state.comment_hash != hash) {
    // Another Service took the frontend over: its name and its own count of connections.
    changes.remove(SetId::ServiceIps, key_only(key));
    state.in_service_ips = false;
  }
  if (state.in_service_ips != (plan != nullptr)) {
    if (plan != nullptr) {
      changes.add(SetId::ServiceIps, {encode(key), {}, false, comment});
    } else {
      changes.remove(SetId::ServiceIps, key_only(key));
    }
    state.in_service_ips = plan != nullptr;
  }
  state.comment_hash = plan != nullptr ? hash : 0;
  diff_member(
      SetId::RefusedIps,
      key,
      state.in_refused,
      plan != nullptr && plan->fate == Fate::Refuse,
      changes);
  diff_member(
      SetId::DroppedIps,
      key,
      state.in_dropped,
      plan != nullptr && plan->fate == Fate::Drop,
      changes);
  return state;
}

}  // namespace shunt::backend::nft
