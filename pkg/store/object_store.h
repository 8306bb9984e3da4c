// The latest object by key, and which Services were touched since the last look (spec/semantics.md
// §4, §7).
//
// Owned by the sync thread. Objects are immutable and shared. Cost of every call follows the
// object, never the cluster, except the replace_* calls, which are a complete list.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "kube/endpoint_slice.h"
#include "kube/node.h"
#include "kube/service.h"

namespace shunt::store {

using ServicePtr = std::shared_ptr<const kube::Service>;
using SlicePtr = std::shared_ptr<const kube::EndpointSlice>;
using NodePtr = std::shared_ptr<const kube::Node>;
using ServiceCidrPtr = std::shared_ptr<const kube::ServiceCidr>;

// What was touched since take_changes().
struct Changes {
  std::set<kube::ObjectKey> services;   // the Service itself or one of its slices
  std::set<kube::ObjectKey> slices_of;  // Services whose slices changed
  // Services whose slices changed, with the trigger times that their changes carried (Unix time in
  // nanoseconds), in order of arrival; a removal of a slice drops what was collected
  // (spec/semantics.md §12).
  std::map<kube::ObjectKey, std::vector<std::int64_t>> trigger_times_ns;
  bool node = false;
  bool service_cidrs = false;
  bool operator==(const Changes&) const = default;
};

// Slices of other families are not kept: an agent of one family in a dual-stack cluster need not
// pay for the other half.
struct Families {
  bool ipv4 = true;
  bool ipv6 = true;
};

class ObjectStore {
 public:
  // Trigger times not strictly later than `started_ns` are not collected.
  explicit ObjectStore(std::int64_t started_ns = 0, Families families = {})
      : started_ns_(started_ns), families_(families) {}

  // True when the object differs from the one held (whole-object comparison, resourceVersion
  // included).
  bool upsert(ServicePtr service);
  // A slice that no Service of ours can use (no owner label, marked headless, host names, another
  // family) counts as absent: when one of its name is held, that one is removed.
  bool upsert(SlicePtr slice);
  bool remove_service(const kube::ObjectKey& key);
  // By its own key: whatever the labels of the deleted object say now, it leaves the Service that
  // it was counted to.
  bool remove_slice(const kube::ObjectKey& key);
  // Heartbeats change nothing but the resourceVersion of a Node: they are not a change.
  void upsert(NodePtr node);
  void
  remove_node();  // the last Node is kept: its zone is still the best answer (spec/semantics.md §9)
  void upsert(ServiceCidrPtr cidr);
  void remove_service_cidr(const kube::ObjectKey& key);

  // A complete list: objects absent from it are removed first. Marks the resource as listed.
  void replace_services(std::vector<ServicePtr> all);
  void replace_slices(std::vector<SlicePtr> all);
  void replace_nodes(std::vector<NodePtr> all);
  void replace_service_cidrs(std::vector<ServiceCidrPtr> all);

  // spec/semantics.md §8: no data-plane write before both were listed.
  bool complete() const { return services_listed_ && slices_listed_; }
  bool node_listed() const { return node_listed_; }
  bool service_cidrs_listed() const { return cidrs_listed_; }

  ServicePtr service(const kube::ObjectKey& key) const;  // null when absent
  // Slices of a Service (by their label), sorted by slice name.
  std::vector<SlicePtr> slices_of(const kube::ObjectKey& service) const;
  const kube::Node* node() const { return node_.get(); }
  std::vector<std::string> service_cidrs() const;     // sorted, without duplicates
  std::vector<kube::ObjectKey> service_keys() const;  // every Service, sorted; full passes only
  // Every Service that slices name, known or not, sorted; full passes only.
  std::vector<kube::ObjectKey> slice_owners() const;

  // Marks every Service as touched, as a changed zone demands.
  void touch_all_services();
  bool has_changes() const;
  Changes take_changes();

 private:
  bool is_usable(const kube::EndpointSlice& slice) const;
  void note_slice_added(const kube::ObjectKey& service, const kube::EndpointSlice& slice);
  void note_slice_removed(const kube::ObjectKey& service);
  // Takes a held slice out of its Service and forgets the Service with its last slice.
  void detach(const kube::EndpointSlice& slice);

  std::int64_t started_ns_;
  Families families_;
  std::unordered_map<kube::ObjectKey, ServicePtr> services_;
  std::unordered_map<kube::ObjectKey, SlicePtr> slices_;
  std::unordered_map<kube::ObjectKey, std::map<std::string, SlicePtr>> slices_by_service_;
  NodePtr node_;
  std::map<kube::ObjectKey, ServiceCidrPtr> cidrs_;
  bool services_listed_ = false;
  bool slices_listed_ = false;
  bool node_listed_ = false;
  bool cidrs_listed_ = false;
  Changes changes_;
};

}  // namespace shunt::store
