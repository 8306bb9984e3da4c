#include "netlink/route.h"

// By its whole path: netlink/socket.h is a file of ours as well.
#include <libnl3/netlink/socket.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <netlink/cache.h>
#include <netlink/errno.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/log.h"
#include "netlink/drain.h"

namespace shunt::netlink {
namespace {

using Cache = Handle<nl_cache, nl_cache_free>;

tl::unexpected<Error> failure(const char* what, int code) {
  return fail(Errc::Again, std::string(what) + ": " + ::nl_geterror(code));
}

template <typename Alloc>
Result<Cache> read_cache(const char* what, const Alloc& alloc) {
  // A dump that the kernel changed under (EINTR, which libnl tells as NLE_DUMP_INTR) is begun
  // again.
  constexpr int kTries = 5;
  int error = 0;
  for (int i = 0; i < kTries; ++i) {
    nl_cache* cache = nullptr;
    error = alloc(&cache);
    if (error == 0) {
      return Cache(cache);
    }
    if (error != -NLE_DUMP_INTR && error != -NLE_AGAIN) {
      break;
    }
  }
  return failure(what, error);
}

std::optional<net::IpAddress> ip_of(const nl_addr* address) {
  if (address == nullptr) {
    return std::nullopt;
  }
  const int family = ::nl_addr_get_family(address);
  if (family != AF_INET && family != AF_INET6) {
    return std::nullopt;
  }
  net::IpAddress ip{family == AF_INET ? net::Family::IPv4 : net::Family::IPv6, {}};
  if (::nl_addr_get_len(address) != ip.size()) {
    return std::nullopt;
  }
  std::memcpy(ip.bytes.data(), ::nl_addr_get_binary_addr(address), ip.size());
  return ip;
}

// Of a point-to-point link IFA_LOCAL is ours, and libnl calls it local as well.
std::optional<HostAddress> host_address(rtnl_addr* from, nl_cache* links) {
  const nl_addr* local = ::rtnl_addr_get_local(from);
  const auto ip = ip_of(local);
  if (!ip) {
    return std::nullopt;
  }
  HostAddress out;
  out.address = *ip;
  out.prefix_length = static_cast<std::uint8_t>(::rtnl_addr_get_prefixlen(from));
  out.interface_index = ::rtnl_addr_get_ifindex(from);
  out.flags = ::rtnl_addr_get_flags(from);
  std::array<char, 64> name{};
  if (::rtnl_link_i2name(links, out.interface_index, name.data(), name.size()) != nullptr) {
    out.interface_name = name.data();
  }
  return out;
}

}  // namespace

Result<AddressMonitor> AddressMonitor::open() {
  Socket events(::nl_socket_alloc());
  Socket queries(::nl_socket_alloc());
  if (!events || !queries) {
    return fail(Errc::Again, "rtnetlink: no memory");
  }
  for (nl_sock* socket : {events.get(), queries.get()}) {
    if (const int error = ::nl_connect(socket, NETLINK_ROUTE); error != 0) {
      return failure("rtnetlink", error);
    }
  }
  // What is said before we read is heard as well: nothing falls between.
  const int joined = ::nl_socket_add_memberships(
      events.get(), RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_LINK, 0);
  const int nonblocking = ::nl_socket_set_nonblocking(events.get());
  if (joined != 0 || nonblocking != 0) {
    return failure("rtnetlink: word of changes", joined != 0 ? joined : nonblocking);
  }
  AddressMonitor monitor(std::move(events), std::move(queries));
  auto addresses = monitor.read_all();
  if (!addresses) {
    return tl::unexpected(addresses.error());
  }
  monitor.addresses_ = std::move(*addresses);
  return monitor;
}

int AddressMonitor::fd() const { return ::nl_socket_get_fd(events_.get()); }

bool AddressMonitor::take_changes() {
  outdated_ = drain(fd()) || outdated_;
  if (!outdated_) {
    return false;
  }
  auto now = read_all();
  if (!now) {
    log::warn("the host's addresses cannot be read", {log::kv("error", now.error().what)});
    return false;
  }
  outdated_ = false;
  if (*now == addresses_) {
    return false;
  }
  addresses_ = std::move(*now);
  return true;
}

Result<std::vector<HostAddress>> AddressMonitor::read_all() {
  const auto links = read_cache("links", [&](nl_cache** cache) {
    return ::rtnl_link_alloc_cache(queries_.get(), AF_UNSPEC, cache);
  });
  if (!links) {
    return tl::unexpected(links.error());
  }
  const auto cache = read_cache(
      "addresses", [&](nl_cache** out) { return ::rtnl_addr_alloc_cache(queries_.get(), out); });
  if (!cache) {
    return tl::unexpected(cache.error());
  }
  std::vector<HostAddress> addresses;
  for (nl_object* at = ::nl_cache_get_first(cache->get()); at != nullptr;
       at = ::nl_cache_get_next(at)) {
    // An nl_object is the beginning of every object of libnl.
    if (auto address = host_address(reinterpret_cast<rtnl_addr*>(at), links->get())) {
      addresses.push_back(std::move(*address));
    }
  }
  std::sort(addresses.begin(), addresses.end());
  return addresses;
}

}  // namespace shunt::netlink
