// The latest object by key, and which Services were touched since the last look (spec/semantics.md
// §4, §7).
//
// Services and slices are kept packed (packed.h), a hundred bytes or two each, and unpacked for who
// asks. Cost of every call follows the object, never the cluster, except where a complete list
// ends.
//
// A list comes piece by piece, and each piece counts at once: an object of a list is as true as one
// of a watch. What the list did not name goes when the list ends. Lists of a resource are numbered;
// an object carries the number of the last list before or in which it was seen.
//
// Owned by the sync thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kube/endpoint_slice.h"
#include "kube/node.h"
#include "kube/service.h"
#include "store/image.h"
#include "store/name_pool.h"
#include "store/packed.h"

namespace shunt::store {

using ServicePtr = std::shared_ptr<const kube::Service>;
using SlicePtr = std::shared_ptr<const kube::EndpointSlice>;
using ListNumber = std::uint32_t;

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
  bool empty() const {  // trigger times come with their Service
    return services.empty() && slices_of.empty() && !node && !service_cidrs;
  }
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
  bool upsert(const ServicePtr& service, ListNumber list = 0);
  // A slice that no Service of ours can use (no owner label, marked headless, host names, another
  // family) counts as absent: when one of its name is held, that one is removed.
  bool upsert(const SlicePtr& slice, ListNumber list = 0);
  bool remove_service(const kube::ObjectKey& key);
  // By its own key: whatever the labels of the deleted object say now, it leaves the Service that
  // it was counted to.
  bool remove_slice(const kube::ObjectKey& key);
  // Heartbeats change nothing but the resourceVersion of a Node: they are not a change.
  void upsert(NodePtr node, ListNumber list = 0);
  void
  remove_node();  // the last Node is kept: its zone is still the best answer (spec/semantics.md §9)
  void upsert(ServiceCidrPtr cidr, ListNumber list = 0);
  void remove_service_cidr(const kube::ObjectKey& key);

  // The list of this number has ended: objects that were last seen before it are removed, and the
  // resource counts as listed.
  void services_listed(ListNumber list);
  void slices_listed(ListNumber list);
  void nodes_listed();
  void service_cidrs_listed(ListNumber list);

  // spec/semantics.md §8: no data-plane write before both were listed.
  bool complete() const { return services_listed_ && slices_listed_; }
  bool node_listed() const { return node_listed_; }
  bool service_cidrs_known() const { return cidrs_listed_; }

  ServicePtr service(const kube::ObjectKey& key) const;  // null when absent
  // Both the Service and a slice of it are held.
  bool has_service_and_slice(const kube::ObjectKey& key) const;
  // Slices of a Service (by their label), sorted by slice name.
  std::vector<SlicePtr> slices_of(const kube::ObjectKey& service) const;
  const kube::Node* node() const { return node_.get(); }
  std::vector<std::string> service_cidrs() const;  // sorted, without duplicates
  std::size_t service_count() const { return service_count_; }
  std::vector<kube::ObjectKey> service_keys() const;  // every Service, sorted; full passes only
  // Every Service that slices name, known or not, sorted; full passes only.
  std::vector<kube::ObjectKey> slice_owners() const;

  // Another number whenever an object is another than it was: in what image() would hold.
  std::uint64_t revision() const { return revision_; }
  // A copy of everything that is held, for another thread. Bytes and names are copied, no object is
  // unpacked.
  Image image() const;

  // Marks every Service as touched, as a changed zone demands.
  void touch_all_services();
  bool has_changes() const;
  Changes take_changes();

 private:
  struct SliceRecord;
  using SliceEntry = std::pair<const kube::ObjectKey, SliceRecord>;
  struct ServiceRecord {
    Packed service;  // empty: only slices are known
    ListNumber list = 0;
    std::vector<const SliceEntry*> slices;  // sorted by name
  };
  using Services = std::unordered_map<kube::ObjectKey, ServiceRecord>;
  struct SliceRecord {
    Packed slice;
    ListNumber list = 0;
    Services::value_type* owner = nullptr;
  };
  using Slices = std::unordered_map<kube::ObjectKey, SliceRecord>;
  struct TriggerTime {
    std::int64_t ns = 0;
    ListNumber list = 0;
  };
  struct CidrRecord {
    ServiceCidrPtr cidr;
    ListNumber list = 0;
  };

  bool is_usable(const kube::EndpointSlice& slice) const;
  // Holds `next` instead, unless both are equal; whether it does.
  bool exchange(Packed& held, Packed next);
  void attach(SliceEntry& slice, const kube::ObjectKey& service);
  // Takes a held slice out of its Service.
  void detach(SliceEntry& slice);
  void forget_if_empty(Services::iterator service);
  void forget_slice(Slices::iterator slice, ListNumber list);
  void note_slice_added(
      const kube::ObjectKey& service, const kube::EndpointSlice& slice, ListNumber list);
  // Drops the trigger times that came before this list.
  void note_slice_removed(const kube::ObjectKey& service, ListNumber list);

  std::uint64_t revision_ = 0;
  std::int64_t started_ns_;
  Families families_;
  NamePool names_;
  Services services_;
  Slices slices_;
  std::size_t service_count_ = 0;
  NodePtr node_;
  std::map<kube::ObjectKey, CidrRecord> cidrs_;
  bool services_listed_ = false;
  bool slices_listed_ = false;
  bool node_listed_ = false;
  bool cidrs_listed_ = false;
  Changes changes_;  // all but the trigger times
  std::map<kube::ObjectKey, std::vector<TriggerTime>> trigger_times_;
};

}  // namespace shunt::store
