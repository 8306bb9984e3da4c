// What systemd is told, if it started us with Type=notify: ready, reloading, stopping, a line of
// status, and that we live (WatchdogSec=). Without it nothing is said and nothing fails.
//
// Messages may be sent from any thread; none waits, a full socket loses one.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/backoff.h"

namespace shunt::health {

class ServiceManager {
 public:
  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and takes them out of the environment, so
  // that credential plugins do not speak for us. Call it before there is a second thread.
  static ServiceManager from_environment();
  ServiceManager() = default;  // nobody

  bool present() const { return size_ != 0; }
  // How long it waits for a sign of life. Feed it every half of this; nothing: it does not wait.
  std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }

  void ready(std::string_view status) const;
  void status(std::string_view status) const;
  void reloading() const;  // ready() ends it
  void stopping() const;
  void feed_watchdog() const;

 private:
  void send(const std::string& message) const;

  sockaddr_un address_{};
  socklen_t size_ = 0;
  std::optional<std::chrono::microseconds> watchdog_;
};

// Whether the daemon lives, for feed_watchdog(). A sync loop that has nothing to do sleeps and
// beats not: that is fine for as long as it likes. One that has work must have turned within
// `patience`. Pure.
struct Heartbeat {
  Clock::time_point last{};  // when the loop last began a turn
  bool work_waits = false;   // something was delivered, or is due, that the loop has not taken up
};
bool is_alive(const Heartbeat& heartbeat, Clock::time_point now, Millis patience);

}  // namespace shunt::health
