#include "apiserver/deadline.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace shunt::apiserver {

Result<> wait_until_ready(int fd, Readiness readiness, const Deadline& deadline) {
  const short events = readiness == Readiness::Read ? POLLIN : POLLOUT;
  for (;;) {
    const auto left = std::chrono::ceil<Millis>(deadline.at - Clock::now()).count();
    const auto timeout = static_cast<int>(std::clamp<Millis::rep>(left, 0, 3'600'000));
    std::array<pollfd, 2> fds{pollfd{fd, events, 0}, pollfd{deadline.stop_fd, POLLIN, 0}};
    const int ready = ::poll(fds.data(), fds.size(), timeout);
    if (fds[1].revents != 0) {
      return fail(Errc::Again, "stopped", ECANCELED);
    }
    if (ready > 0) {
      return {};
    }
    if (ready == 0 && Clock::now() >= deadline.at) {
      return fail(Errc::Again, "timed out", ETIMEDOUT);
    }
    if (ready < 0 && errno != EINTR) {
      return fail(Errc::Again, "cannot poll", errno);
    }
  }
}

bool stop_asked(int stop_fd) {
  pollfd fd{stop_fd, POLLIN, 0};
  return ::poll(&fd, 1, 0) == 1;
}

}  // namespace shunt::apiserver
