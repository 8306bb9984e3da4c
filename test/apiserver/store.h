// What etcd and the watch cache are to the real server: objects by key, one counter of versions,
// and a bounded log of changes per resource. Any thread; one mutex.
//
// The past is kept as the log alone: the state at an older version is today's state with the later
// changes undone, which serves paging and resourceVersionMatch=Exact without copies.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/wake_fd.h"
#include "test/apiserver/object.h"
#include "test/apiserver/status.h"

namespace shunt::test_api {

struct Change {
  std::uint64_t version = 0;
  ObjectPtr before;  // null: the object is new
  ObjectPtr after;   // null: the object is gone
  ObjectPtr gone;    // then this is what is said of it: `before` at the version of the deletion
};

class Store {
 public:
  // Called for each change, in order, while the store is locked: the journal.
  using OnChange = std::function<void(std::size_t table, const std::string& key, const Change&)>;
  Store(std::size_t log_size, OnChange on_change)
      : log_size_(log_size), on_change_(std::move(on_change)) {}

  using Objects = std::vector<ObjectPtr>;
  struct Listing {
    std::uint64_t version = 0;
    std::shared_ptr<const Objects> objects;  // in the order of keys
  };
  std::uint64_t version() const;
  ObjectPtr find(std::size_t table, const std::string& key) const;
  Listing list(std::size_t table) const;
  Answer<Listing> list_at(std::size_t table, std::uint64_t version) const;  // 410 when forgotten

  // The one way to change the store. `edit` gets the current object (or null) and the version that
  // a new one would have; it answers the new object, null to delete, or the current one to leave
  // everything as it is.
  using Edit = std::function<Answer<ObjectPtr>(const ObjectPtr& current, std::uint64_t next)>;
  Answer<Change> change(std::size_t table, const std::string& key, const Edit& edit);

  // Changes after a version. A new watch may not start before `oldest`, which is how the real watch
  // cache counts; a watch that runs misses something only when it has not been told `lost`.
  struct Batch {
    std::uint64_t version = 0;  // `changes` reach up to here
    std::uint64_t oldest = 0;
    std::uint64_t lost = 0;  // the last change that the log dropped
    std::uint64_t announced = 0;
    std::vector<Change> changes;
  };
  Batch changes_after(std::size_t table, std::uint64_t version) const;

  // Every watch that takes bookmarks sends one now, whatever table it is of.
  void announce();
  void forget_log();                       // old versions are too old from now on
  void advance_to(std::uint64_t version);  // the counter jumps ahead
  // At start: a change of an earlier run. A null object is a deletion.
  void replay(std::size_t table, const std::string& key, ObjectPtr object, std::uint64_t version);

  // Rung at each change of the table, and by ring_all.
  void subscribe(std::size_t table, WakeFd& bell);
  void unsubscribe(std::size_t table, WakeFd& bell);
  void ring_all();

 private:
  struct Table {
    std::map<std::string, ObjectPtr> objects;
    std::deque<Change> log;
    std::uint64_t oldest = 0;
    std::uint64_t lost = 0;
    std::set<WakeFd*> bells;
    std::uint64_t changed = 0;  // the version of the last change
    // States that somebody listed lately, for the next one and for the pages that follow: sharing
    // a hundred thousand pointers costs more than sending a page of objects.
    struct Snapshot {
      std::uint64_t version = 0;  // of the last change in it
      std::shared_ptr<const Objects> objects;
    };
    std::deque<Snapshot> snapshots;
  };
  // The state after the change of this version. Under the lock.
  std::shared_ptr<const Objects> state_at(Table& table, std::uint64_t version) const;
  void commit(Table& table, const std::string& key, Change change);

  const std::size_t log_size_;
  const OnChange on_change_;
  mutable std::mutex mutex_;  // guards all below
  std::uint64_t version_ = 1;
  std::uint64_t announced_ = 0;                // the version when `announce` was last called
  mutable std::array<Table, kTables> tables_;  // lists leave snapshots
};

}  // namespace shunt::test_api
