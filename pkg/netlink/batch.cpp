#include "netlink/batch.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

namespace shunt::netlink {

Batch::Batch(std::uint16_t subsystem) : Messages(subsystem) {
  sequence_ = 0;  // BATCH_BEGIN; the first message is 1
  header(NFNL_MSG_BATCH_BEGIN, 0, 0, subsystem);
  end();
}

std::span<const std::uint8_t> Batch::finish() {
  ask_for_answer();
  const std::uint32_t count = sequence_;
  header(NFNL_MSG_BATCH_END, 0, 0, subsystem_);
  end();
  sequence_ = count;
  return bytes_;
}

}  // namespace shunt::netlink
