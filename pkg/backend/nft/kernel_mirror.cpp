#include "backend/nft/kernel_mirror.h"

#include <algorithm>
#include <utility>

namespace shunt::backend::nft {
namespace {

std::size_t range_index(SetId set) { return set == SetId::ServiceCidrs ? 0 : 1; }

// An interval set holds the first address of a range and, flagged, the first address after it; a
// range that reaches the end of the address space has no end element.
void for_range_elements(const net::IpRange& range, const auto& each) {
  each(Element{encode(range.first), {}, false, {}});
  if (const auto after = net::next_address(range.last)) {
    each(Element{encode(*after), {}, true, {}});
  }
}

net::IpAddress previous_address(net::IpAddress ip) {
  for (std::size_t i = ip.size(); i-- > 0;) {
    if (ip.bytes[i]-- != 0) {
      break;
    }
  }
  return ip;
}

net::IpAddress highest_address(net::Family family) {
  net::IpAddress ip{family, {}};
  for (std::size_t i = 0; i < ip.size(); ++i) {
    ip.bytes[i] = 0xff;
  }
  return ip;
}

}  // namespace

void KernelMirror::clear() { *this = KernelMirror(family_); }

// ---- adoption ----

void KernelMirror::adopt_slot(const Element& element) {
  const auto key = decode_slot(family_, element.key);
  const auto endpoint = decode_data(family_, element.data);
  if (!key || !endpoint) {
    strays_.emplace_back(SetId::Endpoints, element);
    return;
  }
  adopted_slots_[key->frontend].emplace_back(key->slot, *endpoint);
}

void KernelMirror::adopt(SetId set, const Element& element) {
  switch (set) {
    case SetId::ClusterIps:
      if (const auto ip = decode_ip(family_, element.key)) {
        cluster_ips_.elements[*ip].in_kernel = true;
        return;
      }
      break;
    case SetId::Hairpin:
      if (const auto key = decode_hairpin(family_, element.key)) {
        hairpins_.elements[*key].in_kernel = true;
        return;
      }
      break;
    case SetId::ServiceCidrs:
    case SetId::PodCidrs:
      if (const auto ip = decode_ip(family_, element.key)) {
        auto& list = element.interval_end ? range_ends_ : range_starts_;
        list[range_index(set)].push_back(*ip);
        return;
      }
      break;
    case SetId::Endpoints:
      adopt_slot(element);
      return;
    default:
      if (const auto key = decode_frontend(family_, element.key)) {
        FrontendState& state = entries_[*key].state;
        if (set == SetId::ServiceIps) {
          state.in_service_ips = true;
          state.comment_hash = comment_hash(element.comment);
        } else if (set == SetId::RefusedIps) {
          state.in_refused = true;
        } else if (set == SetId::DroppedIps) {
          state.in_dropped = true;
        } else {
          const auto bits = static_cast<unsigned>(set) - static_cast<unsigned>(SetId::Class4) +
                            kSmallestClassBits;
          state.classes |= 1U << bits;
        }
        return;
      }
      break;
  }
  strays_.emplace_back(set, element);
}

void KernelMirror::finish_adoption() {
  for (auto& [key, slots] : adopted_slots_) {
    std::sort(slots.begin(), slots.end());
    FrontendState& state = entries_[key].state;
    for (const auto& [slot, endpoint] : slots) {
      if (slot == state.slots.size()) {
        state.slots.push_back(endpoint);
      } else {  // behind a gap
        strays_.emplace_back(SetId::Endpoints, Element{encode_slot(key, slot), {}, false, {}});
      }
    }
  }
  adopted_slots_.clear();
  for (std::size_t which = 0; which < 2; ++which) {
    auto& ranges = which == 0 ? service_cidrs_ : pod_cidrs_;
    auto& starts = range_starts_[which];
    auto& ends = range_ends_[which];
    std::sort(starts.begin(), starts.end());
    std::sort(ends.begin(), ends.end());
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const auto end = std::upper_bound(ends.begin(), ends.end(), starts[i]);
      ranges.push_back(
          {starts[i], end == ends.end() ? highest_address(family_) : previous_address(*end)});
    }
    starts.clear();
    ends.clear();
  }
}

// ---- staging ----

void KernelMirror::count_hairpins(
    const desired::FrontendKey& key, const desired::EndpointListPtr& list, int step) {
  if (list) {
    for (const net::SocketAddress& endpoint : *list) {
      hairpins_.staged[{endpoint, key.protocol}] += step;
    }
  }
}

void KernelMirror::stage(const desired::FrontendKey& key, const desired::FrontendPlan* plan) {
  const auto found = entries_.find(key);
  static const MirrorEntry none;
  const MirrorEntry& from = found == entries_.end() ? none : found->second;
  MirrorEntry next;
  next.state = diff_frontend(key, from.state, plan, changes_);
  next.counted = plan != nullptr;
  next.hairpin = plan == nullptr ? nullptr : plan->hairpin;
  if (from.counted != next.counted) {
    cluster_ips_.staged[key.ip] += next.counted ? 1 : -1;
  }
  if (from.hairpin != next.hairpin) {
    count_hairpins(key, from.hairpin, -1);
    count_hairpins(key, next.hairpin, 1);
  }
  staged_entries_.insert_or_assign(key, std::move(next));
}

void KernelMirror::stage_ranges(SetId set, const std::vector<net::Cidr>& wanted) {
  const auto& now = set == SetId::ServiceCidrs ? service_cidrs_ : pod_cidrs_;
  std::vector<net::IpRange> next = net::merged_ranges(wanted);
  for (const net::IpRange& range : now) {
    if (!std::binary_search(next.begin(), next.end(), range)) {
      for_range_elements(range, [&](Element&& e) { changes_.remove(set, std::move(e)); });
    }
  }
  for (const net::IpRange& range : next) {
    if (!std::binary_search(now.begin(), now.end(), range)) {
      for_range_elements(range, [&](Element&& e) { changes_.add(set, std::move(e)); });
    }
  }
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
  for (const auto& [ip, shared] : cluster_ips_.elements) {
    cluster_ips_.staged.try_emplace(ip, 0);
  }
  for (const auto& [key, shared] : hairpins_.elements) {
    hairpins_.staged.try_emplace(key, 0);
  }
}

template <typename Key>
void KernelMirror::complete(SharedSet<Key>& shared, SetId set) {
  for (const auto& [key, step] : shared.staged) {
    const auto found = shared.elements.find(key);
    const Shared now = found == shared.elements.end() ? Shared{} : found->second;
    const bool needed = now.count + step > 0;
    if (needed && !now.in_kernel) {
      changes_.add(set, {encode(key), {}, false, {}});
    } else if (!needed && now.in_kernel) {
      changes_.remove(set, {encode(key), {}, false, {}});
    }
  }
}

const ElementChanges& KernelMirror::staged() {
  if (!completed_) {
    completed_ = true;
    complete(cluster_ips_, SetId::ClusterIps);
    complete(hairpins_, SetId::Hairpin);
  }
  return changes_;
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

void KernelMirror::commit() {
  for (auto& [key, entry] : staged_entries_) {
    if (entry.state.empty() && !entry.counted) {
      entries_.erase(key);
    } else {
      entries_.insert_or_assign(key, std::move(entry));
    }
  }
  commit_shared(cluster_ips_);
  commit_shared(hairpins_);
  for (std::size_t which = 0; which < 2; ++which) {
    if (staged_ranges_[which]) {
      (which == 0 ? service_cidrs_ : pod_cidrs_) = std::move(*staged_ranges_[which]);
    }
  }
  if (strays_staged_) {
    strays_.clear();
  }
  discard();
}

void KernelMirror::discard() {
  changes_.clear();
  completed_ = false;
  strays_staged_ = false;
  staged_entries_.clear();
  cluster_ips_.staged.clear();
  hairpins_.staged.clear();
  staged_ranges_[0].reset();
  staged_ranges_[1].reset();
}

}  // namespace shunt::backend::nft
