// A tracked connection as a value.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "net/socket_address.h"

namespace shunt::backend::conntrack {

struct Direction {
  net::SocketAddress from;
  net::SocketAddress to;
  auto operator<=>(const Direction&) const = default;
};

struct Flow {
  std::uint8_t protocol = 0;  // the number in the IP header: the table has more than net::Protocol
  Direction original;         // as the client sent it
  Direction reply;            // as answers come back: `from` is where the flow was sent in truth
  bool answered = false;      // a packet of the reply direction was seen
  std::uint16_t zone = 0;
  // The kernel's name for this entry: a later flow with the same addresses has another.
  std::uint32_t id = 0;
  auto operator<=>(const Flow&) const = default;
};

using LocalAddresses = std::unordered_set<net::IpAddress>;

}  // namespace shunt::backend::conntrack
