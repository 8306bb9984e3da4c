// Requests of rtnetlink or of a generic netlink family, one after the other in one buffer. Each
// stands for itself: the kernel obeys those it can. messages.h is the same for netfilter, whose
// header is another and whose numbers are the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "netlink/messages.h"

namespace shunt::netlink {

class Requests : public Attributes {
 public:
  // For the family that the socket was opened for, whose number the kernel gives.
  static constexpr std::uint16_t kGenericFamily = 0;

  // Opens the next request; attributes follow. `head` is the fixed header behind that of netlink
  // (genlmsghdr, rtmsg, ...), `flags` are NLM_F_* beyond NLM_F_REQUEST.
  template <typename Head>
  void begin(std::uint16_t type, std::uint16_t flags, const Head& head) {
    static_assert(sizeof head % 4 == 0, "attributes are aligned");
    std::uint8_t bytes[sizeof head];
    std::memcpy(bytes, &head, sizeof head);
    open(type, flags, bytes);
  }
  void end();
  void put_u16(std::uint16_t attribute, std::uint16_t value);  // in the order of this machine

  std::size_t count() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  void clear();  // the buffer is kept for the next ones
  // The request `index`, its netlink header first.
  std::span<const std::uint8_t> operator[](std::size_t index) const;

 private:
  void open(std::uint16_t type, std::uint16_t flags, std::span<const std::uint8_t> head);
  std::size_t start() const { return ends_.empty() ? 0 : ends_.back(); }

  std::vector<std::size_t> ends_;
};

}  // namespace shunt::netlink
