#include "store/object_store.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace shunt::store {
namespace {

kube::ObjectKey owner(const kube::EndpointSlice& slice) {
  return {slice.meta.key.name_space, slice.service_name};
}

template <typename Map>
std::vector<kube::ObjectKey> sorted_keys(const Map& map) {
  std::vector<kube::ObjectKey> keys;
  keys.reserve(map.size());
  for (const auto& [key, value] : map) {
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

// Keys that are held but not in the complete list, in order, so that the same list has the same
// effect whatever the hash table thinks.
template <typename Map, typename T>
std::vector<kube::ObjectKey> absent_keys(
    const Map& held, const std::vector<std::shared_ptr<const T>>& all) {
  std::unordered_set<kube::ObjectKey> listed;
  listed.reserve(all.size());
  for (const auto& object : all) {
    if (object) {
      listed.insert(object->meta.key);
    }
  }
  std::vector<kube::ObjectKey> absent;
  for (const auto& [key, object] : held) {
    if (!listed.contains(key)) {
      absent.push_back(key);
    }
  }
  std::sort(absent.begin(), absent.end());
  return absent;
}

bool same_but_for_version(const kube::Node& a, const kube::Node& b) {
  kube::Node copy = a;
  copy.meta.resource_version = b.meta.resource_version;
  return copy == b;
}

}  // namespace

bool ObjectStore::upsert(ServicePtr service) {
  if (!service) {
    return false;
  }
  ServicePtr& held = services_[service->meta.key];
  if (held && *held == *service) {
    return false;
  }
  held = std::move(service);
  changes_.services.insert(held->meta.key);
  return true;
}

bool ObjectStore::remove_service(const kube::ObjectKey& key) {
  if (services_.erase(key) == 0) {
    return false;
  }
  changes_.services.insert(key);
  return true;
}

bool ObjectStore::is_usable(const kube::EndpointSlice& slice) const {
  const bool owned = !slice.service_name.empty() && !slice.has_headless_label;
  const bool named = !slice.meta.key.name.empty() && !slice.meta.key.name_space.empty();
  const bool of_our_family = (slice.address_type == "IPv4" && families_.ipv4) ||
                             (slice.address_type == "IPv6" && families_.ipv6);
  return owned && named && of_our_family;
}

bool ObjectStore::upsert(SlicePtr slice) {
  if (!slice) {
    return false;
  }
  if (!is_usable(*slice)) {
    return remove_slice(slice->meta.key);
  }
  SlicePtr& held = slices_[slice->meta.key];
  if (held && *held == *slice) {
    return false;
  }
  const kube::ObjectKey service = owner(*slice);
  if (held && owner(*held) != service) {
    note_slice_removed(owner(*held));
    detach(*held);
  }
  slices_by_service_[service].insert_or_assign(slice->meta.key.name, slice);
  held = std::move(slice);
  note_slice_added(service, *held);
  return true;
}

bool ObjectStore::remove_slice(const kube::ObjectKey& key) {
  const auto found = slices_.find(key);
  if (found == slices_.end()) {
    return false;
  }
  note_slice_removed(owner(*found->second));
  detach(*found->second);
  slices_.erase(found);
  return true;
}

void ObjectStore::detach(const kube::EndpointSlice& slice) {
  const auto siblings = slices_by_service_.find(owner(slice));
  siblings->second.erase(slice.meta.key.name);
  if (siblings->second.empty()) {
    slices_by_service_.erase(siblings);
  }
}

void ObjectStore::note_slice_added(
    const kube::ObjectKey& service, const kube::EndpointSlice& slice) {
  changes_.services.insert(service);
  changes_.slices_of.insert(service);
  if (slice.trigger_time_ns > started_ns_) {
    changes_.trigger_times_ns[service].push_back(slice.trigger_time_ns);
  }
}

void ObjectStore::note_slice_removed(const kube::ObjectKey& service) {
  changes_.services.insert(service);
  changes_.slices_of.insert(service);
  changes_.trigger_times_ns.erase(service);
}

void ObjectStore::upsert(NodePtr node) {
  if (!node) {
    return;
  }
  if (!node_ || !same_but_for_version(*node_, *node)) {
    changes_.node = true;
  }
  node_ = std::move(node);
}

void ObjectStore::remove_node() {}

void ObjectStore::upsert(ServiceCidrPtr cidr) {
  if (!cidr) {
    return;
  }
  ServiceCidrPtr& held = cidrs_[cidr->meta.key];
  if (!held || held->cidrs != cidr->cidrs) {
    changes_.service_cidrs = true;
  }
  held = std::move(cidr);
}

void ObjectStore::remove_service_cidr(const kube::ObjectKey& key) {
  if (cidrs_.erase(key) > 0) {
    changes_.service_cidrs = true;
  }
}

void ObjectStore::replace_services(std::vector<ServicePtr> all) {
  for (const kube::ObjectKey& key : absent_keys(services_, all)) {
    (void)remove_service(key);  // it is held, hence a change
  }
  for (ServicePtr& service : all) {
    (void)upsert(std::move(service));  // the dirty keys say what changed
  }
  services_listed_ = true;
}

void ObjectStore::replace_slices(std::vector<SlicePtr> all) {
  for (const kube::ObjectKey& key : absent_keys(slices_, all)) {
    (void)remove_slice(key);  // it is held, hence a change
  }
  for (SlicePtr& slice : all) {
    (void)upsert(std::move(slice));  // the dirty keys say what changed
  }
  slices_listed_ = true;
}

void ObjectStore::replace_nodes(std::vector<NodePtr> all) {
  // The list is selected by name, so it holds one Node or none.
  if (!all.empty()) {
    upsert(std::move(all.front()));
  }
  node_listed_ = true;
}

void ObjectStore::replace_service_cidrs(std::vector<ServiceCidrPtr> all) {
  for (const kube::ObjectKey& key : absent_keys(cidrs_, all)) {
    remove_service_cidr(key);
  }
  for (ServiceCidrPtr& cidr : all) {
    upsert(std::move(cidr));
  }
  changes_.service_cidrs = changes_.service_cidrs || !cidrs_listed_;  // even an empty list is news
  cidrs_listed_ = true;
}

ServicePtr ObjectStore::service(const kube::ObjectKey& key) const {
  const auto found = services_.find(key);
  return found == services_.end() ? nullptr : found->second;
}

std::vector<SlicePtr> ObjectStore::slices_of(const kube::ObjectKey& service) const {
  std::vector<SlicePtr> slices;
  const auto found = slices_by_service_.find(service);
  if (found != slices_by_service_.end()) {
    slices.reserve(found->second.size());
    for (const auto& [name, slice] : found->second) {
      slices.push_back(slice);
    }
  }
  return slices;
}

std::vector<std::string> ObjectStore::service_cidrs() const {
  std::set<std::string> ranges;
  for (const auto& [key, cidr] : cidrs_) {
    ranges.insert(cidr->cidrs.begin(), cidr->cidrs.end());
  }
  return {ranges.begin(), ranges.end()};
}

std::vector<kube::ObjectKey> ObjectStore::service_keys() const { return sorted_keys(services_); }

std::vector<kube::ObjectKey> ObjectStore::slice_owners() const {
  return sorted_keys(slices_by_service_);
}

void ObjectStore::touch_all_services() {
  for (const auto& [key, service] : services_) {
    changes_.services.insert(key);
  }
}

bool ObjectStore::has_changes() const { return changes_ != Changes{}; }

Changes ObjectStore::take_changes() { return std::exchange(changes_, Changes{}); }

}  // namespace shunt::store
