#include "base/stoppable_thread.h"

#include <pthread.h>

#include <utility>

namespace shunt {

void StoppableThread::start(const char* name, std::function<void()> run) {
  if (thread_.joinable()) {
    return;
  }
  stop_.clear();
  thread_ = std::thread(std::move(run));
  (void)::pthread_setname_np(thread_.native_handle(), name);  // for ps only
}

void StoppableThread::stop() {
  stop_.ring();
  if (thread_.joinable()) {
    thread_.join();
  }
}

}  // namespace shunt
