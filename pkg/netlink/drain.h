// Takes what waits in a socket that only tells that something changed.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace shunt::netlink {

// Whether anything was said, or lost (ENOBUFS), which is a word, too. What it says is not looked
// at, so a datagram need not fit. Never waits.
inline bool drain(int socket) {
  std::array<char, 64> beginning;
  bool any = false;
  for (;;) {
    if (::recv(socket, beginning.data(), beginning.size(), MSG_DONTWAIT) >= 0 || errno == ENOBUFS) {
      any = true;
    } else if (errno != EINTR) {
      return any;
    }
  }
}

}  // namespace shunt::netlink
