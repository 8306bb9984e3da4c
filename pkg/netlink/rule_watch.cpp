#include "netlink/rule_watch.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>

#include "netlink/socket.h"

namespace shunt::netlink {

Result<RuleWatch> RuleWatch::open(net::Family family) {
  UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  const unsigned group = family == net::Family::IPv4 ? RTNLGRP_IPV4_RULE : RTNLGRP_IPV6_RULE;
  if (!socket ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::setsockopt(socket.get(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) != 0) {
    return sys_fail("rtnetlink: word of rules", errno);
  }
  return RuleWatch(std::move(socket));
}

}  // namespace shunt::netlink
