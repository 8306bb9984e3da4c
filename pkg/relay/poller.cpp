#include "relay/poller.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace shunt::relay {
namespace {

constexpr int kBatch = 128;

int timeout_until(std::optional<Clock::time_point> until) {
  if (!until) {
    return -1;
  }
  const auto left = std::chrono::ceil<Millis>(*until - Clock::now()).count();
  return static_cast<int>(std::clamp<Millis::rep>(left, 0, 60'000));
}

}  // namespace

Result<Poller> Poller::open() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) {
    return fail(Errc::Again, std::string("epoll: ") + std::strerror(errno), errno);
  }
  return Poller(std::move(epoll));
}

bool Poller::watch(int fd, Client& client, std::uint32_t events) {
  const auto [it, is_new] = watched_.try_emplace(fd);
  Watched& watched = it->second;
  if (is_new) {
    watched.generation = ++generations_;
  }
  watched.client = &client;
  if (watched.events == events) {
    return true;
  }
  epoll_event event{};
  event.events = events;
  event.data.u64 = std::uint64_t{watched.generation} << 32 | static_cast<std::uint32_t>(fd);
  const int operation = events == 0           ? EPOLL_CTL_DEL
                        : watched.events == 0 ? EPOLL_CTL_ADD
                                              : EPOLL_CTL_MOD;
  watched.events = events;
  return ::epoll_ctl(epoll_.get(), operation, fd, &event) == 0;
}

void Poller::forget(int fd) {
  const auto it = watched_.find(fd);
  if (it == watched_.end()) {
    return;
  }
  if (it->second.events != 0) {
    epoll_event unused{};
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, &unused);  // the close would do it as well
  }
  watched_.erase(it);
}

void Poller::wait(std::optional<Clock::time_point> until) {
  std::array<epoll_event, kBatch> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), kBatch, timeout_until(until));
  for (int i = 0; i < count; ++i) {  // -1: EINTR, the caller comes again
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const int fd = static_cast<int>(event.data.u64 & 0xffffffffU);
    const auto it = watched_.find(fd);
    if (it != watched_.end() && it->second.generation == event.data.u64 >> 32) {
      it->second.client->ready(fd, event.events);
    }
  }
}

}  // namespace shunt::relay
