// epoll for one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "base/backoff.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace shunt::relay {

class Poller {
 public:
  // Who is told. A client must live until wait() has returned when it is told something, so owners
  // take clients away between two waits.
  class Client {
   public:
    virtual ~Client() = default;
    virtual void ready(int fd, std::uint32_t events) = 0;
  };

  static Result<Poller> open();
  int fd() const { return epoll_.get(); }

  // Level-triggered. Without events nothing is told, hang-ups included: a descriptor of which
  // nothing is wanted cannot make the thread spin. False when the kernel lacks memory.
  bool watch(int fd, Client& client, std::uint32_t events);
  void forget(int fd);  // before it is closed

  void wait(std::optional<Clock::time_point> until);

 private:
  struct Watched {
    Client* client = nullptr;
    std::uint32_t events = 0;
    std::uint32_t generation = 0;  // tells an event of a descriptor that was closed meanwhile
  };

  explicit Poller(UniqueFd epoll) : epoll_(std::move(epoll)) {}

  UniqueFd epoll_;
  std::unordered_map<int, Watched> watched_;
  std::uint32_t generations_ = 0;
};

}  // namespace shunt::relay
