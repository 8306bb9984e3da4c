#include "snapshot/keeper.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "snapshot/file.h"

namespace shunt::snapshot {
namespace {

using log::kv;
using std::chrono::microseconds;

constexpr int kShare = 200;

microseconds since(Clock::time_point begun) {
  return std::chrono::duration_cast<microseconds>(Clock::now() - begun);
}

}  // namespace

Clock::time_point Pacing::next(Clock::time_point now) {
  if (!next_) {
    next_ = now + interval_;
  }
  return *next_;
}

void Pacing::copied(Clock::time_point began, Clock::duration took) {
  next_ = began + std::max(interval_, kShare * took);
}

class Keeper::Impl {
 public:
  explicit Impl(KeeperOptions options) : options_(std::move(options)), pacing_(options_.interval) {}
  ~Impl() { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void start() {
    if (!thread_.joinable()) {
      stopping_ = false;
      thread_ = std::thread([this] { run(); });
      (void)::pthread_setname_np(thread_.native_handle(), "snapshot");  // for ps only
    }
  }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  std::optional<Clock::time_point> offer(const store::ObjectStore& store, Clock::time_point now) {
    if (!store.complete()) {
      return std::nullopt;
    }
    std::unique_lock lock(mutex_);
    if (std::exchange(retry_, false)) {
      saved_.reset();
    }
    if (saved_ == store.revision()) {
      return std::nullopt;
    }
    const auto next = pacing_.next(now);
    if (now < next) {
      return next;
    }
    if (busy_) {  // the disk is slower than we are
      return now + options_.interval;
    }
    lock.unlock();
    const auto begun = Clock::now();
    auto image = std::make_unique<const store::Image>(store.image());
    const auto took = since(begun);
    saved_ = store.revision();
    pacing_.copied(now, took);
    lock.lock();
    image_ = std::move(image);
    busy_ = true;
    status_.copy = took;
    lock.unlock();
    changed_.notify_one();
    return now + options_.interval;  // should it fail, somebody must try again
  }

  KeeperStatus status() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || image_; });
      if (stopping_) {
        return;
      }
      auto image = std::move(image_);
      lock.unlock();
      const auto begun = Clock::now();
      const auto size =
          write_file(options_.path, options_.node_name, std::chrono::system_clock::now(), *image);
      image.reset();
      const auto took = since(begun);
      tell(size);
      lock.lock();
      busy_ = false;
      retry_ = !size;
      status_.written += size ? 1 : 0;
      status_.failed += size ? 0 : 1;
      status_.bytes = size ? *size : status_.bytes;
      status_.write = took;
    }
  }

  void tell(const Result<std::uint64_t>& size) {
    const std::string error = size ? "" : size.error().what;
    if (std::exchange(said_, error) != error) {
      if (size) {
        log::info("snapshots can be written again", {kv("path", options_.path)});
      } else {
        log::warn("snapshot not written, will retry", {kv("error", error)});
      }
    }
  }

  const KeeperOptions options_;
  std::thread thread_;
  std::string said_;  // the thread's: why the last one failed

  // The sync thread's.
  Pacing pacing_;
  std::optional<std::uint64_t> saved_;  // the revision that was copied last

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool busy_ = false;
  bool retry_ = false;  // what was copied did not get to the disk
  std::unique_ptr<const store::Image> image_;
  KeeperStatus status_;
};

Keeper::Keeper(KeeperOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Keeper::~Keeper() = default;
void Keeper::start() { impl_->start(); }
void Keeper::stop() { impl_->stop(); }
std::optional<Clock::time_point> Keeper::offer(
    const store::ObjectStore& store, Clock::time_point now) {
  return impl_->offer(store, now);
}
KeeperStatus Keeper::status() const { return impl_->status(); }

}  // namespace shunt::snapshot
