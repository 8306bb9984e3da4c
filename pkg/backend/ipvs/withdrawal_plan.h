// What is to be done next when IPVS balances no more, of one address family: a function of what the
// kernel holds, and of nothing that was done before. Pure.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "net/cidr.h"
#include "netlink/ipvs.h"

namespace shunt::backend::ipvs {

struct Holdings {
  bool device = false;                // kube-ipvs0 is there
  std::vector<net::IpAddress> bound;  // to it; sorted
  std::vector<net::IpAddress> host;   // addresses of all interfaces; sorted
  struct OfServer {
    netlink::ipvs::ServerKey server;
    std::vector<netlink::ipvs::Destination> destinations;
  };
  std::vector<OfServer> servers;  // all, whosever they are
};

// Whether a virtual server at this address is kube-proxy's or ours, as far as that can be told:
// servers have no owner's name. Without the device nothing is; on a host that has it, kube-proxy
// would remove every server outside the excluded ranges, whosever it is. We leave those alone whose
// address is neither on the device nor the host's own.
bool is_of_services(
    const net::IpAddress& address, const Holdings& held, const std::vector<net::Cidr>& excluded);

// In this order. What has connections stays, and gets no new ones.
struct Withdrawing {
  std::vector<std::pair<netlink::ipvs::ServerKey, netlink::ipvs::Destination>> silence;  // weight 0
  std::vector<std::pair<netlink::ipvs::ServerKey, net::SocketAddress>> destinations;     // go
  std::vector<netlink::ipvs::ServerKey> servers;  // go, with what destinations they have
  std::vector<net::IpAddress> addresses;          // leave the device: nothing is served there

  bool empty() const {
    return silence.empty() && destinations.empty() && servers.empty() && addresses.empty();
  }
};
Withdrawing withdraw(const Holdings& held, const std::vector<net::Cidr>& excluded);
// The same at once, connections or not.
Withdrawing withdraw_now(const Holdings& held, const std::vector<net::Cidr>& excluded);

struct Remaining {
  std::size_t servers = 0;
  std::size_t destinations = 0;
  std::size_t connections = 0;         // TCP's and SCTP's of every state; UDP's until they expire
  std::size_t addresses = 0;           // on the device
  std::size_t excluded_addresses = 0;  // likewise, and they stay
  bool operator==(const Remaining&) const = default;
  Remaining& operator+=(const Remaining& other);
};
Remaining remaining(const Holdings& held, const std::vector<net::Cidr>& excluded);

}  // namespace shunt::backend::ipvs
