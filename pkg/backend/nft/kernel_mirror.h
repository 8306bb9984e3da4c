// Our picture of the kernel's table of one family, in terms of frontends: read once by adopt, then
// kept equal by applying to it exactly what the kernel accepted.
//
// Elements that several frontends share (a ClusterIP with many ports) are counted: the element is
// there while somebody needs it. The chains and maps of session affinity are counted too, but leave
// later than their last user (affinity_units.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "backend/nft/affinity.h"
#include "backend/nft/affinity_units.h"
#include "backend/nft/frontend_diff.h"
#include "backend/nft/keys.h"
#include "backend/nft/ruleset.h"
#include "base/backoff.h"
#include "desired/desired_state.h"
#include "net/cidr.h"

namespace shunt::backend::nft {

// What a frontend with session affinity holds on to besides its own elements.
struct AffinityUse {
  Affinity affinity;
  desired::EndpointListPtr local;  // in affinity-local
};

// A frontend in the mirror: what the kernel holds, and which shared elements it holds a count on.
struct MirrorEntry {
  FrontendState state;
  bool counted = false;     // planned since adoption
  bool cluster_ip = false;  // its address is counted in cluster-ips
  bool delivered = false;   // and in ipvs-addresses
  std::shared_ptr<const AffinityUse> affinity;
};

// Of an affinity map only what points to one of `allowed` may stay.
struct Purge {
  std::string map;
  std::optional<net::Port> port;  // of the endpoints, when the map does not say it
  desired::EndpointListPtr allowed;
};

// The changes of one transaction and what they do to the mirror. Nothing is final until commit().
class KernelMirror {
 public:
  // `for_ipvs`: the program is that of IPVS mode.
  explicit KernelMirror(net::Family family, bool for_ipvs = false)
      : family_(family), for_ipvs_(for_ipvs) {}

  void clear();  // the table is empty, or gone
  // Takes over an element that an earlier run left. What does not fit our layout is remembered as
  // stray.
  void adopt(const Set& set, const Element& element);
  void adopt_chain(const std::string& chain) { units_.adopt(chain); }
  // What the sets that were taken over so far say of the slots that are still to be read: which
  // frontends have some, and how many at most, more than half of which are there.
  struct Occupied {
    desired::FrontendKey frontend;
    std::size_t slots = 0;
  };
  std::vector<Occupied> occupied(Place place) const;
  // Slots are there that no class speaks of: an earlier run died while it loaded a bare table.
  bool unfinished() const { return unfinished_; }
  bool has_frontends() const { return !entries_.empty(); }
  // False when a class speaks of slots that were not found.
  bool finish_adoption(Clock::time_point now);

  // How many slots of this place the frontend has, or has a class for.
  std::size_t slots_of(const desired::FrontendKey& key, Place place) const;
  // What a look at the kernel found of one frontend, after others touched it: `seen` is a mirror
  // of those elements alone, whose adoption is finished. The frontend is to be staged anew.
  void believe(const desired::FrontendKey& key, KernelMirror& seen);
  // The same for the elements that frontends share; they are put right with the next commit.
  void believe_cluster_ip(const net::IpAddress& ip, bool in_kernel);
  void believe_affinity_local(const desired::FrontendKey& key, bool in_kernel);
  // An interval set is emptied and written as it should be.
  void stage_anew(SetId set);

  // Stages the changes for one frontend on top of what is staged already. A frontend is staged at
  // most once a transaction.
  void stage(const desired::FrontendKey& key, const desired::FrontendPlan* plan);
  // Its endpoints alone, which nothing leads to yet.
  void stage_slots(const desired::FrontendKey& key, const desired::FrontendPlan* plan);
  std::size_t staged() const { return changes_.count; }  // elements
  // Marks the table as not to be trusted by who finds it, until stage_sweep().
  void stage_unfinished();
  void stage_ranges(SetId set, std::vector<net::IpRange> wanted);
  // What an earlier run left and does not fit our layout goes; before anything else, since it may
  // be in the way.
  void stage_strays();
  // Frontends that no plan claimed since adoption; stage them with no plan, and then the shared
  // elements that nobody needs, when every wanted frontend has been staged.
  std::vector<desired::FrontendKey> unclaimed() const;
  void stage_sweep();
  // Chains and maps that nobody has led to for a while.
  void stage_collection(Clock::time_point now) { units_.stage_collection(now); }
  std::optional<Clock::time_point> collection_due() const { return units_.collection_due(); }

  // Completes the shared elements; call before sending. The changes are to be moved out.
  void fill(std::vector<Fragment>& create, ElementChanges& changes, Removal& remove);
  void commit(Clock::time_point now);  // the kernel took it
  void discard();                      // it did not
  // Gives the memory of changes that were sent back, for the next ones.
  void recycle(ElementChanges&& sent);
  void release_memory() { changes_ = {}; }
  std::vector<Purge> take_purges();  // that the commits since the last call ask for

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
  static constexpr std::size_t kRangeSets = 4;
  using Slots = std::vector<std::pair<std::uint32_t, net::SocketAddress>>;

  template <typename Key>
  void complete(SharedSet<Key>& shared, SetId set);
  template <typename Key>
  static void believe(SharedSet<Key>& shared, const Key& key, bool in_kernel);
  template <typename Key>
  void commit_shared(SharedSet<Key>& shared);
  void stage_affinity(
      const desired::FrontendKey& key,
      const MirrorEntry& from,
      const desired::FrontendPlan* plan,
      MirrorEntry& next);
  void count_affinity(const desired::FrontendKey& key, const AffinityUse& use, int step);
  bool adopt_member(const Set& set, const Element& element);
  bool adopt_slot(Place place, const Set& set, const Element& element);
  void finish_slots(Place place);
  void finish_ranges();

  net::Family family_;
  bool for_ipvs_;
  std::unordered_map<desired::FrontendKey, MirrorEntry> entries_;
  SharedSet<net::IpAddress> cluster_ips_;
  SharedSet<net::IpAddress> ipvs_addresses_;
  SharedSet<desired::FrontendKey> affinity_local_;
  AffinityUnits units_;
  std::array<std::vector<net::IpRange>, kRangeSets> ranges_;
  std::map<std::string, Purge> purges_;
  bool unfinished_ = false;

  // Adoption.
  std::array<std::unordered_map<desired::FrontendKey, Slots>, 4> adopted_slots_;  // by place
  std::array<std::vector<net::IpAddress>, kRangeSets> range_starts_;
  std::array<std::vector<net::IpAddress>, kRangeSets> range_ends_;
  std::vector<std::pair<SetId, Element>> strays_;

  // Staged.
  ElementChanges changes_;
  bool strays_staged_ = false;
  std::optional<bool> staged_unfinished_;
  std::unordered_map<desired::FrontendKey, MirrorEntry> staged_entries_;
  std::array<std::optional<std::vector<net::IpRange>>, kRangeSets> staged_ranges_;
  std::map<std::string, Purge> staged_purges_;
};

}  // namespace shunt::backend::nft
