// Word of changes in one subsystem of netfilter, as the kernel broadcasts it to a multicast group.
//
// One thread. What this process changes itself is not heard: the kernel sorts it out by the port
// numbers of our sockets before it is queued, so that a load of a million elements does not
// overflow this socket. Others' changes wait in the socket's buffer (kListenBuffer, which needs
// CAP_NET_ADMIN in the initial user namespace); what does not fit is lost, and receive() says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace shunt::netlink {

struct Notification {
  std::uint16_t type = 0;   // of the subsystem: NFT_MSG_*
  std::uint8_t family = 0;  // NFPROTO_*
  std::span<const std::uint8_t> attributes;
};

class Listener {
 public:
  static constexpr int kListenBuffer = 8 << 20;  // bytes

  // `own_ports`: Socket::port() of every socket whose changes are not to be heard; at most 64.
  static Result<std::unique_ptr<Listener>> open(
      unsigned group, std::span<const std::uint32_t> own_ports);

  int fd() const { return socket_.get(); }  // readable: call receive()

  // Everything that waits; never waits itself. Errc::Stale when something was lost: what is read
  // after that is whole again.
  Result<> receive(const std::function<void(const Notification&)>& each);

 private:
  explicit Listener(UniqueFd socket);
  UniqueFd socket_;
  std::vector<std::uint8_t> buffer_;
};

}  // namespace shunt::netlink
