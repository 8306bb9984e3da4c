#include "store/object_store.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace shunt::store {
namespace {

// Keys of what was last seen before this list, in order, so that the same list has the same effect
// whatever the hash table thinks.
template <typename Map>
std::vector<kube::ObjectKey> older_keys(const Map& held, ListNumber list, const auto& is_held) {
  std::vector<kube::ObjectKey> older;
  for (const auto& [key, record] : held) {
    if (record.list < list && is_held(record)) {
      older.push_back(key);
    }
  }
  std::sort(older.begin(), older.end());
  return older;
}

template <typename Map>
std::vector<kube::ObjectKey> sorted_keys(const Map& map, const auto& counts) {
  std::vector<kube::ObjectKey> keys;
  keys.reserve(map.size());
  for (const auto& [key, record] : map) {
    if (counts(record)) {
      keys.push_back(key);
    }
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

// A removal that is later than every list.
constexpr ListNumber kLiveRemoval = std::numeric_limits<ListNumber>::max();

bool same_but_for_version(const kube::Node& a, const kube::Node& b) {
  kube::Node copy = a;
  copy.meta.resource_version = b.meta.resource_version;
  return copy == b;
}

}  // namespace

bool ObjectStore::exchange(Packed& held, Packed next) {
  if (held == next) {
    release(next, names_);
    return false;
  }
  release(held, names_);
  held = std::move(next);
  ++revision_;
  return true;
}

void ObjectStore::forget_if_empty(Services::iterator service) {
  if (service->second.service.empty() && service->second.slices.empty()) {
    services_.erase(service);
  }
}

bool ObjectStore::upsert(const ServicePtr& service, ListNumber list) {
  if (!service) {
    return false;
  }
  ServiceRecord& record = services_[service->meta.key];
  record.list = list;
  const bool is_new = record.service.empty();
  if (!exchange(record.service, pack(*service, names_))) {
    return false;
  }
  service_count_ += is_new ? 1 : 0;
  changes_.services.insert(service->meta.key);
  return true;
}

bool ObjectStore::remove_service(const kube::ObjectKey& key) {
  const auto found = services_.find(key);
  if (found == services_.end() || found->second.service.empty()) {
    return false;
  }
  (void)exchange(found->second.service, {});  // it is held, hence another
  --service_count_;
  changes_.services.insert(key);
  forget_if_empty(found);
  return true;
}

bool ObjectStore::is_usable(const kube::EndpointSlice& slice) const {
  const bool owned = !slice.service_name.empty() && !slice.has_headless_label;
  const bool named = !slice.meta.key.name.empty() && !slice.meta.key.name_space.empty();
  const bool of_our_family = (slice.address_type == "IPv4" && families_.ipv4) ||
                             (slice.address_type == "IPv6" && families_.ipv6);
  return owned && named && of_our_family;
}

bool ObjectStore::upsert(const SlicePtr& slice, ListNumber list) {
  if (!slice) {
    return false;
  }
  if (!is_usable(*slice)) {
    return remove_slice(slice->meta.key);
  }
  SliceEntry& entry = *slices_.try_emplace(slice->meta.key).first;
  SliceRecord& record = entry.second;
  record.list = list;
  if (!exchange(record.slice, pack(*slice, names_))) {
    return false;
  }
  const kube::ObjectKey service{slice->meta.key.name_space, slice->service_name};
  if (record.owner != nullptr && record.owner->first != service) {
    note_slice_removed(record.owner->first, kLiveRemoval);
    detach(entry);
  }
  if (record.owner == nullptr) {
    attach(entry, service);
  }
  note_slice_added(service, *slice, list);
  return true;
}

bool ObjectStore::remove_slice(const kube::ObjectKey& key) {
  const auto found = slices_.find(key);
  if (found == slices_.end()) {
    return false;
  }
  forget_slice(found, kLiveRemoval);
  return true;
}

void ObjectStore::forget_slice(Slices::iterator slice, ListNumber list) {
  note_slice_removed(slice->second.owner->first, list);
  detach(*slice);
  release(slice->second.slice, names_);
  slices_.erase(slice);
  ++revision_;
}

namespace {

template <typename Entry>
bool by_name(const Entry* a, const Entry* b) {
  return a->first.name < b->first.name;
}

}  // namespace

void ObjectStore::attach(SliceEntry& slice, const kube::ObjectKey& service) {
  auto& owner = *services_.try_emplace(service).first;
  auto& siblings = owner.second.slices;
  const SliceEntry* entry = &slice;
  siblings.insert(
      std::upper_bound(siblings.begin(), siblings.end(), entry, by_name<SliceEntry>), entry);
  slice.second.owner = &owner;
}

void ObjectStore::detach(SliceEntry& slice) {
  const auto owner = services_.find(slice.second.owner->first);
  auto& siblings = owner->second.slices;
  siblings.erase(std::find(siblings.begin(), siblings.end(), &slice));
  slice.second.owner = nullptr;
  forget_if_empty(owner);
}

void ObjectStore::note_slice_added(
    const kube::ObjectKey& service, const kube::EndpointSlice& slice, ListNumber list) {
  changes_.services.insert(service);
  changes_.slices_of.insert(service);
  if (slice.trigger_time_ns > started_ns_) {
    trigger_times_[service].push_back({slice.trigger_time_ns, list});
  }
}

void ObjectStore::note_slice_removed(const kube::ObjectKey& service, ListNumber list) {
  changes_.services.insert(service);
  changes_.slices_of.insert(service);
  const auto times = trigger_times_.find(service);
  if (times != trigger_times_.end()) {
    std::erase_if(times->second, [&](const TriggerTime& time) { return time.list < list; });
    if (times->second.empty()) {
      trigger_times_.erase(times);
    }
  }
}

void ObjectStore::upsert(NodePtr node, ListNumber /*list*/) {
  if (!node) {
    return;
  }
  if (!node_ || !same_but_for_version(*node_, *node)) {
    changes_.node = true;
    ++revision_;
  }
  node_ = std::move(node);
}

void ObjectStore::remove_node() {}

void ObjectStore::upsert(ServiceCidrPtr cidr, ListNumber list) {
  if (!cidr) {
    return;
  }
  CidrRecord& held = cidrs_[cidr->meta.key];
  held.list = list;
  if (!held.cidr || held.cidr->cidrs != cidr->cidrs) {
    changes_.service_cidrs = true;
    ++revision_;
  }
  held.cidr = std::move(cidr);
}

void ObjectStore::remove_service_cidr(const kube::ObjectKey& key) {
  if (cidrs_.erase(key) > 0) {
    changes_.service_cidrs = true;
    ++revision_;
  }
}

void ObjectStore::services_listed(ListNumber list) {
  const auto is_held = [](const ServiceRecord& record) { return !record.service.empty(); };
  for (const kube::ObjectKey& key : older_keys(services_, list, is_held)) {
    (void)remove_service(key);  // it is held, hence a change
  }
  services_listed_ = true;
}

void ObjectStore::slices_listed(ListNumber list) {
  const auto is_held = [](const SliceRecord&) { return true; };
  // What the list itself brought came after these removals, however late we hear of them.
  for (const kube::ObjectKey& key : older_keys(slices_, list, is_held)) {
    forget_slice(slices_.find(key), list);
  }
  slices_listed_ = true;
}

// The list is selected by name, so it holds one Node or none.
void ObjectStore::nodes_listed() {
  changes_.node = changes_.node || !node_listed_;  // from now on no Node means that there is none
  node_listed_ = true;
}

void ObjectStore::service_cidrs_listed(ListNumber list) {
  const auto is_held = [](const CidrRecord&) { return true; };
  for (const kube::ObjectKey& key : older_keys(cidrs_, list, is_held)) {
    remove_service_cidr(key);
  }
  changes_.service_cidrs = changes_.service_cidrs || !cidrs_listed_;  // even an empty list is news
  revision_ += cidrs_listed_ ? 0 : 1;
  cidrs_listed_ = true;
}

ServicePtr ObjectStore::service(const kube::ObjectKey& key) const {
  const auto found = services_.find(key);
  if (found == services_.end() || found->second.service.empty()) {
    return nullptr;
  }
  return std::make_shared<const kube::Service>(unpack_service(found->second.service, key, names_));
}

bool ObjectStore::has_service_and_slice(const kube::ObjectKey& key) const {
  const auto found = services_.find(key);
  return found != services_.end() && !found->second.service.empty() &&
         !found->second.slices.empty();
}

std::vector<SlicePtr> ObjectStore::slices_of(const kube::ObjectKey& service) const {
  std::vector<SlicePtr> slices;
  const auto found = services_.find(service);
  if (found != services_.end()) {
    slices.reserve(found->second.slices.size());
    for (const SliceEntry* entry : found->second.slices) {
      slices.push_back(std::make_shared<const kube::EndpointSlice>(
          unpack_slice(entry->second.slice, entry->first, names_)));
    }
  }
  return slices;
}

std::vector<std::string> ObjectStore::service_cidrs() const {
  std::set<std::string> ranges;
  for (const auto& [key, held] : cidrs_) {
    ranges.insert(held.cidr->cidrs.begin(), held.cidr->cidrs.end());
  }
  return {ranges.begin(), ranges.end()};
}

std::vector<kube::ObjectKey> ObjectStore::service_keys() const {
  return sorted_keys(
      services_, [](const ServiceRecord& record) { return !record.service.empty(); });
}

std::vector<kube::ObjectKey> ObjectStore::slice_owners() const {
  return sorted_keys(services_, [](const ServiceRecord& record) { return !record.slices.empty(); });
}

Image ObjectStore::image() const {
  Image out(names_);
  for (const auto& [key, record] : services_) {
    if (!record.service.empty()) {
      out.add_service(key, record.service.bytes());
    }
  }
  for (const auto& [key, record] : slices_) {
    out.add_slice(key, record.slice.bytes());
  }
  out.node = node_;
  out.service_cidrs_known = cidrs_listed_;
  for (const auto& [key, held] : cidrs_) {
    out.service_cidrs.push_back(held.cidr);
  }
  return out;
}

void ObjectStore::touch_all_services() {
  for (const auto& [key, record] : services_) {
    if (!record.service.empty()) {
      changes_.services.insert(key);
    }
  }
}

bool ObjectStore::has_changes() const { return !changes_.empty(); }

Changes ObjectStore::take_changes() {
  for (const auto& [service, times] : std::exchange(trigger_times_, {})) {
    auto& taken = changes_.trigger_times_ns[service];
    for (const TriggerTime& time : times) {
      taken.push_back(time.ns);
    }
  }
  return std::exchange(changes_, Changes{});
}

}  // namespace shunt::store
