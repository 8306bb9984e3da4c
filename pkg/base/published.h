// The window between threads: one writer publishes immutable values, readers take the latest.
//
// A mutex and a pointer, not std::atomic<std::shared_ptr>: g++ 12's makes TSan cry wolf.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace shunt {

template <typename T>
class Published {
 public:
  void publish(std::shared_ptr<const T> value) {
    const std::lock_guard lock(mutex_);
    value_ = std::move(value);
  }
  std::shared_ptr<const T> latest() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const T> value_;
};

}  // namespace shunt
