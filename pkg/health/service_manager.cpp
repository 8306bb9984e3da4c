#include "health/service_manager.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/unique_fd.h"

namespace shunt::health {
namespace {

// Takes it out of the environment.
std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string out = value == nullptr ? "" : value;
  (void)::unsetenv(name);  // fails only for a name that cannot be
  return out;
}

std::optional<std::int64_t> positive_number(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc{} && end == text.data() + text.size();
  return is_number && number > 0 ? std::optional(number) : std::nullopt;
}

std::string one_line(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(
      out, [](char c) { return c == '\n' || c == '\r' || c == '\0'; }, ' ');
  return out;
}

std::string monotonic_microseconds() {
  timespec now{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &now);  // cannot fail
  constexpr std::int64_t kMicros = 1'000'000;
  return std::to_string(std::int64_t{now.tv_sec} * kMicros + now.tv_nsec / 1000);
}

}  // namespace

ServiceManager ServiceManager::from_environment() {
  const std::string path = take_variable("NOTIFY_SOCKET");
  const std::string period = take_variable("WATCHDOG_USEC");
  const std::string pid = take_variable("WATCHDOG_PID");
  ServiceManager out;
  // A file, or with "@" a name in the abstract namespace. Other kinds (vsock) are for machines, not
  // for services.
  const bool is_known = path.size() > 1 && (path.front() == '/' || path.front() == '@');
  if (!is_known || path.size() > sizeof out.address_.sun_path) {
    return out;
  }
  out.address_.sun_family = AF_UNIX;
  std::memcpy(out.address_.sun_path, path.data(), path.size());
  if (path.front() == '@') {
    out.address_.sun_path[0] = '\0';
  }
  out.size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const auto micros = positive_number(period);
  const bool is_for_us = pid.empty() || positive_number(pid) == std::int64_t{::getpid()};
  if (micros && is_for_us) {
    out.watchdog_ = std::chrono::microseconds(*micros);
  }
  return out;
}

void ServiceManager::send(const std::string& message) const {
  if (!present()) {
    return;
  }
  const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  // A manager that is gone or does not read changes nothing for us.
  (void)::sendto(
      fd.get(),
      message.data(),
      message.size(),
      MSG_NOSIGNAL | MSG_DONTWAIT,
      reinterpret_cast<const sockaddr*>(&address_),
      size_);
}

void ServiceManager::ready(std::string_view status) const {
  send("READY=1\nSTATUS=" + one_line(status));
}

void ServiceManager::status(std::string_view status) const { send("STATUS=" + one_line(status)); }

void ServiceManager::reloading() const {
  send("RELOADING=1\nMONOTONIC_USEC=" + monotonic_microseconds());
}

void ServiceManager::stopping() const { send("STOPPING=1"); }

void ServiceManager::feed_watchdog() const { send("WATCHDOG=1"); }

bool is_alive(const Heartbeat& heartbeat, Clock::time_point now, Millis patience) {
  return !heartbeat.work_waits || now - heartbeat.last < patience;
}

}  // namespace shunt::health
