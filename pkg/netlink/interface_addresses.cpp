#include "netlink/interface_addresses.h"

#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/handle.h"

namespace shunt::netlink {

Result<std::vector<net::IpAddress>> interface_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) {
    return fail(Errc::Again, "addresses of this node: " + std::string(std::strerror(errno)), errno);
  }
  const Handle<ifaddrs, ::freeifaddrs> list(first);
  std::vector<net::IpAddress> out;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) {
      continue;
    }
    net::IpAddress ip;
    if (entry->ifa_addr->sa_family == AF_INET) {
      const auto* raw = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
      std::memcpy(ip.bytes.data(), &raw->sin_addr, 4);
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const auto* raw = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr);
      ip.family = net::Family::IPv6;
      std::memcpy(ip.bytes.data(), &raw->sin6_addr, 16);
    } else {
      continue;
    }
    out.push_back(ip);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace shunt::netlink
