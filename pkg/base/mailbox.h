// The door between the watch threads and the sync thread: one slot a key, the last value wins, so a
// slow reader never makes it larger than the cluster.
//
// A Mailbox carries the objects of one resource. A complete list (a relist or a streaming list)
// comes object by object between begin_list() and end_list(), and lists are numbered: each slot
// says which list was the last to begin before it was filled. So the reader can use the objects of
// a list as they come, and knows at its end what the list did not name. A list that is begun again
// has another number; nothing need be said of the one that was left unfinished.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/wake_fd.h"

namespace shunt {

template <typename T>
class Mailbox {
 public:
  using Key = std::string;
  using ListNumber = std::uint32_t;
  struct Slot {
    std::optional<T> value;  // nullopt: deleted
    ListNumber list = 0;
    bool operator==(const Slot&) const = default;
  };
  struct Mail {
    std::map<Key, Slot> changes;
    // The list of this number is complete: all of its objects are in `changes` or came earlier.
    std::optional<ListNumber> listed;
    bool empty() const { return changes.empty() && !listed; }
  };

  // `wake` must outlive the mailbox; it is rung when there is mail where there was none.
  explicit Mailbox(WakeFd& wake) : wake_(&wake) {}

  // Any thread.
  void upsert(Key key, T value) {
    deliver([&] { mail_.changes.insert_or_assign(std::move(key), Slot{std::move(value), list_}); });
  }
  void remove(Key key) {
    deliver([&] { mail_.changes.insert_or_assign(std::move(key), Slot{std::nullopt, list_}); });
  }
  void begin_list() {
    const std::lock_guard lock(mutex_);
    ++list_;
  }
  void end_list() {
    deliver([&] { mail_.listed = list_; });
  }

  // What was known before anybody could be asked, as if it were a complete list that is older than
  // every other: what the first real list does not name goes when that ends. False, and nothing is
  // taken, once there was any word of the resource: that is newer. Call it once, at most.
  bool preload(std::vector<std::pair<Key, T>> known) {
    {
      const std::lock_guard lock(mutex_);
      if (heard_) {
        return false;
      }
      heard_ = true;
      for (auto& [key, value] : known) {
        mail_.changes.insert_or_assign(std::move(key), Slot{std::move(value), 0});
      }
      mail_.listed = 0;
    }
    wake_->ring();
    return true;
  }

  // The reader. Takes everything that is pending.
  Mail drain() {
    const std::lock_guard lock(mutex_);
    return std::exchange(mail_, Mail{});
  }

 private:
  template <typename Put>
  void deliver(const Put& put) {
    bool was_empty = false;
    {
      const std::lock_guard lock(mutex_);
      was_empty = mail_.empty();
      heard_ = true;
      put();
    }
    if (was_empty) {
      wake_->ring();
    }
  }

  std::mutex mutex_;
  Mail mail_;
  ListNumber list_ = 0;  // 0: none has begun
  bool heard_ = false;   // something was delivered
  WakeFd* wake_;
};

}  // namespace shunt
