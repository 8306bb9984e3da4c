// Time as it is, for threads that end when a descriptor becomes readable.
#pragma once

#include <cerrno>

#include "apiserver/deadline.h"
#include "apiserver/transport.h"

namespace shunt::apiserver {

class StopWaiter final : public Waiter {
 public:
  explicit StopWaiter(int stop_fd) : stop_fd_(stop_fd) {}
  Clock::time_point now() const override { return Clock::now(); }
  bool stopping() const override { return stop_asked(stop_fd_); }
  bool wait(Millis delay) override {
    const auto woken = wait_until_ready(stop_fd_, Readiness::Read, Deadline::in(delay, stop_fd_));
    return !woken && woken.error().sys_errno == ETIMEDOUT;
  }

 private:
  int stop_fd_;
};

}  // namespace shunt::apiserver
