#include "backend/nft/kernel_mirror.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "backend/nft/range_difference.h"

namespace shunt::backend::nft {
namespace {

constexpr std::size_t range_index(SetId set) {
  return static_cast<std::size_t>(set) - static_cast<std::size_t>(SetId::ServiceCidrs);
}
static_assert(range_index(SetId::NodePortIps) == 3);

// No ClusterIP: no packet is sent to the unspecified address.
net::IpAddress unfinished_mark(net::Family family) { return {family, {}}; }

// How many slots a frontend of these classes has at most; 0: none.
std::size_t most_slots(const SlotState& state) { return std::bit_floor(state.classes); }

// As many slots were found as its class speaks of.
bool is_complete(const SlotState& state) {
  const std::size_t most = most_slots(state);
  const std::size_t fewest = most <= std::size_t{1} << kSmallestClassBits ? 1 : most / 2 + 1;
  return most == 0 || state.slots().size() >= fewest;
}

Element plain(KeyBytes key) { return {key, {}, false, {}, false}; }

// An interval set holds the first address of a range and, flagged, the first address after it; a
// range that reaches the end of the address space has no end element.
void for_range_elements(const net::IpRange& range, const auto& each) {
  each(plain(encode(range.first)));
  if (const auto after = net::next_address(range.last)) {
    each(Element{encode(*after), {}, true, {}, false});
  }
}

}  // namespace

void KernelMirror::clear() { *this = KernelMirror(family_, for_ipvs_); }

// ---- adoption ----

bool KernelMirror::adopt_slot(Place place, const Set& set, const Element& element) {
  const auto key = decode_slot(family_, set.shape, element.key);
  const auto endpoint = decode_data(family_, element.data);
  if (!key || !endpoint) {
    return false;
  }
  adopted_slots_[static_cast<std::size_t>(place)][key->frontend].emplace_back(key->slot, *endpoint);
  return true;
}

// An element of a set of frontends.
bool KernelMirror::adopt_member(const Set& set, const Element& element) {
  const auto key = decode_frontend(family_, set.shape, element.key);
  if (!key) {
    return false;
  }
  if (set.id == SetId::AffinityLocal) {
    affinity_local_.elements[*key].in_kernel = true;
    return true;
  }
  FrontendState& state = entries_[*key].state;
  if (const auto role = class_role(set.id)) {
    state.of(role->place).classes |= 1U << role->bits;
    return true;
  }
  for (const Membership membership : kMemberships) {
    if (set.id == set_of(membership, set.shape == KeyShape::NodePort)) {
      state.set(membership, true);
      if (membership == Membership::Service) {
        state.comment_hash = comment_hash(element.text);
      }
      return true;
    }
  }
  switch (set.id) {
    case SetId::StickyIps:
    case SetId::StickyNodePorts:
      state.more().sticky = element.text;
      return true;
    case SetId::StickyLocalIps:
    case SetId::StickyLocalNodePorts:
      state.more().sticky_local = element.text;
      return true;
    case SetId::RememberIps:
    case SetId::RememberNodePorts:
      state.more().remember = element.text;
      return true;
    default:
      return false;
  }
}

void KernelMirror::adopt(const Set& set, const Element& element) {
  bool fits = false;
  if (set.id == SetId::ClusterIps) {
    if (const auto ip = decode_ip(family_, element.key)) {
      fits = true;
      if (*ip == unfinished_mark(family_)) {
        unfinished_ = true;
      } else {
        cluster_ips_.elements[*ip].in_kernel = true;
      }
    }
  } else if (set.id == SetId::IpvsAddresses) {
    if (const auto ip = decode_ip(family_, element.key)) {
      fits = true;
      ipvs_addresses_.elements[*ip].in_kernel = true;
    }
  } else if (set.id == SetId::AllowedSources) {
    if (const auto source = decode_source(family_, element)) {
      entries_[source->frontend].state.more().sources.push_back(source->range);
      fits = true;
    }
  } else if (set.interval) {
    if (const auto ip = decode_ip(family_, element.key)) {
      auto& list = element.interval_end ? range_ends_ : range_starts_;
      list[range_index(set.id)].push_back(*ip);
      fits = true;
    }
  } else if (set.holds == Set::Holds::Endpoints) {
    for (const Place place : kPlaces) {
      fits = fits || (set.id == slot_map(place) && adopt_slot(place, set, element));
    }
  } else {
    fits = adopt_member(set, element);
  }
  if (!fits) {
    strays_.emplace_back(set.id, element);
  }
}

std::vector<KernelMirror::Occupied> KernelMirror::occupied(Place place) const {
  std::vector<Occupied> out;
  for (const auto& [key, entry] : entries_) {
    const SlotState& state = is_local(place) ? entry.state.local_endpoints : entry.state.endpoints;
    if (state.classes != 0 && desired::is_node_port(key) == is_of_node_ports(place)) {
      out.push_back({key, most_slots(state)});
    }
  }
  return out;
}

void KernelMirror::finish_slots(Place place) {
  auto& adopted = adopted_slots_[static_cast<std::size_t>(place)];
  for (auto& [key, slots] : adopted) {
    std::sort(slots.begin(), slots.end());
    FrontendState& entry = entries_[key].state;
    SlotState& state = entry.of(place);
    desired::EndpointList dense;
    dense.reserve(slots.size());
    for (const auto& [slot, endpoint] : slots) {
      if (slot == dense.size()) {
        dense.push_back(endpoint);
      } else {  // behind a gap
        strays_.emplace_back(slot_map(place), plain(encode_slot(key, slot)));
      }
    }
    if (!dense.empty()) {
      state.list = std::make_shared<const desired::EndpointList>(std::move(dense));
    }
  }
  adopted.clear();
}

void KernelMirror::finish_ranges() {
  for (std::size_t index = 0; index < kRangeSets; ++index) {
    auto& starts = range_starts_[index];
    auto& ends = range_ends_[index];
    std::sort(starts.begin(), starts.end());
    std::sort(ends.begin(), ends.end());
    for (const net::IpAddress& start : starts) {
      // The end belongs to the nearest start before it.
      const auto end = std::upper_bound(ends.begin(), ends.end(), start);
      const net::IpAddress last =
          end == ends.end() ? net::all_addresses(family_).last : *net::previous_address(*end);
      ranges_[index].push_back({start, last});
    }
    starts.clear();
    ends.clear();
  }
}

bool KernelMirror::finish_adoption(Clock::time_point now) {
  for (const Place place : kPlaces) {
    finish_slots(place);
  }
  finish_ranges();
  for (auto& [key, entry] : entries_) {
    if (entry.state.extras) {
      auto& sources = entry.state.extras->sources;
      std::sort(sources.begin(), sources.end());
    }
  }
  units_.finish_adoption(now);
  return std::all_of(entries_.begin(), entries_.end(), [](const auto& one) {
    return is_complete(one.second.state.endpoints) && is_complete(one.second.state.local_endpoints);
  });
}

// ---- repair ----

std::size_t KernelMirror::slots_of(const desired::FrontendKey& key, Place place) const {
  const auto found = entries_.find(key);
  if (found == entries_.end() || desired::is_node_port(key) != is_of_node_ports(place)) {
    return 0;
  }
  const FrontendState& state = found->second.state;
  const SlotState& slots = is_local(place) ? state.local_endpoints : state.endpoints;
  return std::max(slots.slots().size(), most_slots(slots));
}

void KernelMirror::believe(const desired::FrontendKey& key, KernelMirror& seen) {
  MirrorEntry& entry = entries_[key];
  // Source ranges are an interval set, which is not looked up but written anew.
  std::vector<net::IpRange> sources;
  if (entry.state.extras) {
    sources = std::move(entry.state.extras->sources);
  }
  const auto found = seen.entries_.find(key);
  entry.state = found == seen.entries_.end() ? FrontendState{} : std::move(found->second.state);
  if (!sources.empty()) {
    entry.state.more().sources = std::move(sources);
  }
  strays_.insert(
      strays_.end(),
      std::make_move_iterator(seen.strays_.begin()),
      std::make_move_iterator(seen.strays_.end()));
  seen.strays_.clear();
}

template <typename Key>
void KernelMirror::believe(SharedSet<Key>& shared, const Key& key, bool in_kernel) {
  shared.elements[key].in_kernel = in_kernel;
  shared.staged.try_emplace(key, 0);
}

void KernelMirror::believe_cluster_ip(const net::IpAddress& ip, bool in_kernel) {
  believe(cluster_ips_, ip, in_kernel);
}

void KernelMirror::believe_affinity_local(const desired::FrontendKey& key, bool in_kernel) {
  believe(affinity_local_, key, in_kernel);
}

void KernelMirror::stage_anew(SetId set) {
  changes_.empty_set(set);
  if (set == SetId::AllowedSources) {
    for (const auto& [key, entry] : entries_) {
      if (entry.state.extras) {
        for (const net::IpRange& range : entry.state.extras->sources) {
          changes_.add(set, source_element(key, range));
        }
      }
    }
    return;
  }
  for (const net::IpRange& range : ranges_[range_index(set)]) {
    for_range_elements(range, [&](Element&& e) { changes_.add(set, std::move(e)); });
  }
}

// ---- staging ----

void KernelMirror::count_affinity(
    const desired::FrontendKey& key, const AffinityUse& use, int step) {
  units_.stage(use.affinity, step);
  if (use.local) {
    for (const net::SocketAddress& endpoint : *use.local) {
      affinity_local_.staged[{endpoint.ip, key.protocol, endpoint.port}] += step;
    }
  }
}

namespace {

// Something in `slots` is no longer in `list`.
bool lost_an_endpoint(const SlotState& slots, const desired::EndpointListPtr& list) {
  return std::ranges::any_of(slots.slots(), [&](const auto& endpoint) {
    return !list || !std::binary_search(list->begin(), list->end(), endpoint);
  });
}

std::shared_ptr<const AffinityUse> affinity_use(const desired::FrontendPlan* plan) {
  const auto affinity = plan == nullptr ? std::nullopt : affinity_of(*plan);
  if (!affinity) {
    return nullptr;
  }
  AffinityUse use{*affinity, nullptr};
  if (use.affinity.local_memory && use.affinity.cluster_memory) {
    use.local = use.affinity.local_policy ? plan->endpoints : plan->local_endpoints;
  }
  return std::make_shared<const AffinityUse>(std::move(use));
}

}  // namespace

// What the maps remember may point to endpoints that went, while we looked or while we did not.
void KernelMirror::stage_affinity(
    const desired::FrontendKey& key,
    const MirrorEntry& from,
    const desired::FrontendPlan* plan,
    MirrorEntry& next) {
  next.affinity = affinity_use(plan);
  if (next.affinity) {
    count_affinity(key, *next.affinity, 1);
  }
  if (from.affinity) {
    count_affinity(key, *from.affinity, -1);
  }
  if (!next.affinity) {
    return;
  }
  const Affinity& affinity = next.affinity->affinity;
  const bool fresh = !from.affinity || from.affinity->affinity != affinity;
  const auto purge = [&](bool local, const SlotState& slots, const desired::EndpointListPtr& list) {
    if (list && (fresh || lost_an_endpoint(slots, list))) {
      const std::string map = affinity_map(affinity, local);
      staged_purges_.insert_or_assign(map, Purge{map, affinity.port, list});
    }
  };
  purge(affinity.local_policy, from.state.endpoints, plan->endpoints);
  purge(true, from.state.local_endpoints, plan->local_endpoints);
}

void KernelMirror::stage(const desired::FrontendKey& key, const desired::FrontendPlan* plan) {
  const auto found = entries_.find(key);
  static const MirrorEntry none;
  const MirrorEntry& from = found == entries_.end() ? none : found->second;
  MirrorEntry next;
  next.state = diff_frontend(key, from.state, plan, changes_);
  next.counted = plan != nullptr;
  next.cluster_ip = plan != nullptr && plan->reach == desired::Reach::Internal;
  if (from.cluster_ip != next.cluster_ip) {
    cluster_ips_.staged[key.ip] += next.cluster_ip ? 1 : -1;
  }
  if (for_ipvs_ && !desired::is_node_port(key)) {
    next.delivered = plan != nullptr;
    diff_delivery(key, next.state, next.delivered, changes_);
    if (from.delivered != next.delivered) {
      ipvs_addresses_.staged[key.ip] += next.delivered ? 1 : -1;
    }
  }
  if (from.affinity || (plan != nullptr && plan->affinity)) {
    stage_affinity(key, from, plan, next);
  }
  staged_entries_.insert_or_assign(key, std::move(next));
}

void KernelMirror::stage_slots(const desired::FrontendKey& key, const desired::FrontendPlan* plan) {
  const auto found = entries_.find(key);
  MirrorEntry next;
  next.state = diff_slots(
      key, found == entries_.end() ? FrontendState{} : found->second.state, plan, changes_);
  staged_entries_.insert_or_assign(key, std::move(next));
}

void KernelMirror::stage_unfinished() {
  changes_.add(SetId::ClusterIps, plain(encode(unfinished_mark(family_))));
  staged_unfinished_ = true;
}

void KernelMirror::stage_ranges(SetId set, std::vector<net::IpRange> next) {
  range_difference(
      ranges_[range_index(set)],
      next,
      [&](const net::IpRange& range) {
        for_range_elements(range, [&](Element&& e) { changes_.remove(set, std::move(e)); });
      },
      [&](const net::IpRange& range) {
        for_range_elements(range, [&](Element&& e) { changes_.add(set, std::move(e)); });
      });
  staged_ranges_[range_index(set)] = std::move(next);
}

std::vector<desired::FrontendKey> KernelMirror::unclaimed() const {
  std::vector<desired::FrontendKey> out;
  for (const auto& [key, entry] : entries_) {
    if (!entry.counted && !staged_entries_.contains(key)) {
      out.push_back(key);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

void KernelMirror::stage_strays() {
  strays_staged_ = true;
  for (const auto& [set, element] : strays_) {
    changes_.remove(set, element);
  }
}

void KernelMirror::stage_sweep() {
  if (unfinished_) {
    changes_.remove(SetId::ClusterIps, plain(encode(unfinished_mark(family_))));
    staged_unfinished_ = false;
  }
  for (const auto& [ip, shared] : cluster_ips_.elements) {
    cluster_ips_.staged.try_emplace(ip, 0);
  }
  for (const auto& [ip, shared] : ipvs_addresses_.elements) {
    ipvs_addresses_.staged.try_emplace(ip, 0);
  }
  for (const auto& [key, shared] : affinity_local_.elements) {
    affinity_local_.staged.try_emplace(key, 0);
  }
}

template <typename Key>
void KernelMirror::complete(SharedSet<Key>& shared, SetId set) {
  for (const auto& [key, step] : shared.staged) {
    const auto found = shared.elements.find(key);
    const Shared now = found == shared.elements.end() ? Shared{} : found->second;
    const bool needed = now.count + step > 0;
    if (needed && !now.in_kernel) {
      changes_.add(set, plain(encode(key)));
    } else if (!needed && now.in_kernel) {
      changes_.remove(set, plain(encode(key)));
    }
  }
}

void KernelMirror::fill(std::vector<Fragment>& create, ElementChanges& changes, Removal& remove) {
  complete(cluster_ips_, SetId::ClusterIps);
  complete(ipvs_addresses_, SetId::IpvsAddresses);
  complete(affinity_local_, SetId::AffinityLocal);
  units_.fill(create, remove);
  changes = std::exchange(changes_, {});
}

template <typename Key>
void KernelMirror::commit_shared(SharedSet<Key>& shared) {
  for (const auto& [key, step] : shared.staged) {
    auto& element = shared.elements[key];
    element.count = static_cast<std::uint32_t>(element.count + step);
    element.in_kernel = element.count > 0;
    if (element.count == 0) {
      shared.elements.erase(key);
    }
  }
}

void KernelMirror::commit(Clock::time_point now) {
  for (auto& [key, entry] : staged_entries_) {
    if (entry.state.empty() && !entry.counted) {
      entries_.erase(key);
    } else {
      entries_.insert_or_assign(key, std::move(entry));
    }
  }
  commit_shared(cluster_ips_);
  commit_shared(ipvs_addresses_);
  commit_shared(affinity_local_);
  units_.commit(now);
  for (std::size_t index = 0; index < kRangeSets; ++index) {
    if (staged_ranges_[index]) {
      ranges_[index] = std::move(*staged_ranges_[index]);
    }
  }
  for (auto& [map, purge] : staged_purges_) {
    purges_.insert_or_assign(map, std::move(purge));
  }
  if (strays_staged_) {
    strays_.clear();
  }
  unfinished_ = staged_unfinished_.value_or(unfinished_);
  discard();
}

void KernelMirror::discard() {
  changes_.clear();
  strays_staged_ = false;
  staged_unfinished_.reset();
  staged_entries_.clear();
  cluster_ips_.staged.clear();
  ipvs_addresses_.staged.clear();
  affinity_local_.staged.clear();
  units_.discard();
  for (auto& staged : staged_ranges_) {
    staged.reset();
  }
  staged_purges_.clear();
}

void KernelMirror::recycle(ElementChanges&& sent) {
  changes_ = std::move(sent);
  changes_.clear();
}

std::vector<Purge> KernelMirror::take_purges() {
  std::vector<Purge> out;
  for (auto& [map, purge] : purges_) {
    out.push_back(std::move(purge));
  }
  purges_.clear();
  return out;
}

}  // namespace shunt::backend::nft
