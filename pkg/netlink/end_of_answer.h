// How the kernel ends what it answers to a question, of any family of netlink.
#pragma once

#include <libmnl/libmnl.h>
#include <linux/netlink.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace shunt::netlink {

// The errno of a message that ends an answer, 0 when all went well; nothing: the answer goes on.
inline std::optional<int> end_of_answer(const nlmsghdr* message) {
  if (message->nlmsg_type != NLMSG_DONE && message->nlmsg_type != NLMSG_ERROR) {
    return std::nullopt;
  }
  int error = 0;
  if (mnl_nlmsg_get_payload_len(message) >= sizeof error) {
    std::memcpy(&error, mnl_nlmsg_get_payload(message), sizeof error);
  }
  return -std::min(error, 0);
}

}  // namespace shunt::netlink
