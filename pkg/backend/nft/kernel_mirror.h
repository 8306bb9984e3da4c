// Our picture of the kernel's table of one family, in terms of frontends: read once by adopt, then
// kept equal by applying to it exactly what the kernel accepted.
//
// Elements that several frontends share (a ClusterIP with many ports, an endpoint that may hairpin
// through many Services) are counted: the element is there while somebody needs it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "backend/nft/frontend_diff.h"
#include "backend/nft/keys.h"
#include "backend/nft/ruleset.h"
#include "desired/desired_state.h"
#include "net/cidr.h"

namespace shunt::backend::nft {

// A frontend in the mirror: what the kernel holds, and which shared elements it holds a count on.
struct MirrorEntry {
  FrontendState state;
  bool counted = false;  // planned since adoption: its ClusterIP is counted
  desired::EndpointListPtr hairpin;
};

// The changes of one transaction and what they do to the mirror. Nothing is final until commit().
class KernelMirror {
 public:
  explicit KernelMirror(net::Family family) : family_(family) {}

  void clear();  // the table is empty, or gone
  // Takes over an element that an earlier run left. What does not fit our layout is remembered as
  // stray.
  void adopt(SetId set, const Element& element);
  void finish_adoption();

  // Stages the changes for one frontend on top of what is staged already. A frontend is staged at
  // most once a transaction.
  void stage(const desired::FrontendKey& key, const desired::FrontendPlan* plan);
  void stage_ranges(SetId set, const std::vector<net::Cidr>& wanted);
  // What an earlier run left and does not fit our layout goes; before anything else, since it may
  // be in the way.
  void stage_strays();
  // Frontends that no plan claimed since adoption; stage them with no plan, and then the shared
  // elements that nobody needs, when every wanted frontend has been staged.
  std::vector<desired::FrontendKey> unclaimed() const;
  void stage_sweep();

  const ElementChanges& staged();  // completes the shared elements; call before sending
  void commit();                   // the kernel took it
  void discard();                  // it did not

 private:
  struct Shared {
    std::uint32_t count = 0;
    bool in_kernel = false;
  };
  template <typename Key>
  struct SharedSet {
    std::unordered_map<Key, Shared> elements;
    std::unordered_map<Key, std::int64_t> staged;  // change of the count
  };
  template <typename Key>
  void complete(SharedSet<Key>& shared, SetId set);
  template <typename Key>
  void commit_shared(SharedSet<Key>& shared);
  void count_hairpins(
      const desired::FrontendKey& key, const desired::EndpointListPtr& list, int step);
  void adopt_slot(const Element& element);

  net::Family family_;
  std::unordered_map<desired::FrontendKey, MirrorEntry> entries_;
  SharedSet<net::IpAddress> cluster_ips_;
  SharedSet<HairpinKey> hairpins_;
  std::vector<net::IpRange> service_cidrs_;
  std::vector<net::IpRange> pod_cidrs_;

  // Adoption.
  std::
      unordered_map<desired::FrontendKey, std::vector<std::pair<std::uint32_t, net::SocketAddress>>>
          adopted_slots_;
  std::array<std::vector<net::IpAddress>, 2> range_starts_;
  std::array<std::vector<net::IpAddress>, 2> range_ends_;
  std::vector<std::pair<SetId, Element>> strays_;

  // Staged.
  ElementChanges changes_;
  bool completed_ = false;
  bool strays_staged_ = false;
  std::unordered_map<desired::FrontendKey, MirrorEntry> staged_entries_;
  std::array<std::optional<std::vector<net::IpRange>>, 2> staged_ranges_;
};

}  // namespace shunt::backend::nft
