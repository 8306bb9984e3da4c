// An eventfd that one thread waits on and any thread may ring. Rings coalesce.
#pragma once

#include "base/unique_fd.h"

namespace shunt {

class WakeFd {
 public:
  WakeFd();
  int fd() const { return fd_.get(); }
  void ring();   // any thread; async-signal-safe
  void clear();  // the waiting thread, before it looks at what it was woken for

 private:
  UniqueFd fd_;
};

}  // namespace shunt
