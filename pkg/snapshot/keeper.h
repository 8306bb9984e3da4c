// Keeps the snapshot on disk close to the store: the sync thread makes a copy now and then, another
// thread writes it.
//
//   keeper.start();
//   ... sync thread, after each run and at the time that the last call answered:
//   wake_at = keeper.offer(store, Clock::now());
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/backoff.h"
#include "store/object_store.h"

namespace shunt::snapshot {

// When the next copy may be made: `interval` after the last one began, or two hundred times as long
// as it took, so that copies cost the sync thread half a percent at most. Pure.
class Pacing {
 public:
  explicit Pacing(Millis interval) : interval_(interval) {}
  Clock::time_point next(Clock::time_point now);  // the first is an interval away
  void copied(Clock::time_point began, Clock::duration took);

 private:
  Clock::duration interval_;
  std::optional<Clock::time_point> next_;
};

struct KeeperOptions {
  std::string path;
  std::string node_name;
  Millis interval{10'000};
};

struct KeeperStatus {
  std::uint64_t written = 0;
  std::uint64_t failed = 0;
  std::uint64_t bytes = 0;             // of the last file
  std::chrono::microseconds copy{0};   // the last one: of the sync thread's time
  std::chrono::microseconds write{0};  // the last one: of the other's
};

class Keeper {
 public:
  explicit Keeper(KeeperOptions options);
  ~Keeper();  // stops
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  void start();
  // A file that is being written is finished, one that was not begun is not written.
  void stop();

  // The sync thread. Copies when something changed and it is time; nothing before the store is
  // complete. Answers when to be asked again if nothing else happens: never without a value.
  std::optional<Clock::time_point> offer(const store::ObjectStore& store, Clock::time_point now);

  KeeperStatus status() const;  // any thread

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shunt::snapshot
