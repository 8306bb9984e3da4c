// The door between the watch threads and the sync thread: one slot a key, the last value wins, so a
// slow reader never makes it larger than the cluster.
//
// A Mailbox carries the objects of one resource. `replace` delivers a complete list (a relist or
// the end of a streaming list): it supersedes everything pending, and what follows it amends it.
// Deletions that a relist implies are found by the reader, who knows what it holds.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/wake_fd.h"

namespace shunt {

template <typename T>
class Mailbox {
 public:
  using Key = std::string;
  struct Mail {
    // Set when a complete list arrived since the last drain; `changes` then came after it.
    std::optional<std::map<Key, T>> replacement;
    std::map<Key, std::optional<T>> changes;  // nullopt: deleted
    bool empty() const { return !replacement && changes.empty(); }
  };

  // `wake` must outlive the mailbox; it is rung after every delivery.
  explicit Mailbox(WakeFd& wake) : wake_(&wake) {}

  // Any thread.
  void replace(std::map<Key, T> all) {
    {
      const std::lock_guard lock(mutex_);
      mail_.replacement = std::move(all);
      mail_.changes.clear();
    }
    wake_->ring();
  }
  void upsert(Key key, T value) {
    {
      const std::lock_guard lock(mutex_);
      mail_.changes.insert_or_assign(std::move(key), std::move(value));
    }
    wake_->ring();
  }
  void remove(Key key) {
    {
      const std::lock_guard lock(mutex_);
      mail_.changes.insert_or_assign(std::move(key), std::nullopt);
    }
    wake_->ring();
  }

  // The reader. Takes everything that is pending.
  Mail drain() {
    const std::lock_guard lock(mutex_);
    return std::exchange(mail_, Mail{});
  }

 private:
  std::mutex mutex_;
  Mail mail_;
  WakeFd* wake_;
};

}  // namespace shunt
