// Many netlink messages as one write that the kernel obeys as a whole.
#pragma once

#include <cstdint>
#include <span>

#include "netlink/messages.h"

namespace shunt::netlink {

// One transaction of nfnetlink: BATCH_BEGIN, messages, BATCH_END. messages() does not count the
// first and the last of these.
class Batch : public Messages {
 public:
  explicit Batch(std::uint16_t subsystem);

  // Closes the transaction; the last message asks for an acknowledgement.
  std::span<const std::uint8_t> finish();

  void clear() = delete;  // a transaction is sent once
};

}  // namespace shunt::netlink
