// A thread that ends when a descriptor becomes readable: what a thread that waits for I/O needs to
// be stopped at once.
//
// start() and stop() come from one thread at a time. Whoever owns one calls stop() before what the
// thread uses goes.
#pragma once

#include <functional>
#include <thread>

#include "base/wake_fd.h"

namespace shunt {

class StoppableThread {
 public:
  StoppableThread() = default;
  ~StoppableThread() { stop(); }
  StoppableThread(const StoppableThread&) = delete;
  StoppableThread& operator=(const StoppableThread&) = delete;

  int stop_fd() const { return stop_.fd(); }  // readable: end

  // Does nothing while it runs. `name`: at most 15 characters.
  void start(const char* name, std::function<void()> run);
  void stop();  // asks, and waits

 private:
  WakeFd stop_;
  std::thread thread_;
};

}  // namespace shunt
