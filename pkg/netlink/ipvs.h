// The kernel's table of IPVS virtual servers, over generic netlink (family "IPVS", version 1;
// include/uapi/linux/ip_vs.h; spec/ipvs.md §10): libnl-genl. The one user of it.
//
// One thread, in one network namespace: that of the thread that opens it. Opening asks the kernel
// to load the module ip_vs when it is not there, and the first server with a scheduler its module.
//
// What the kernel has of its own: a destination is refused (Invalid) where no address at all is
// local, as in a namespace whose `lo` is down; and for two minutes it keeps every destination that
// was removed and looks through all of them whenever one is added.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/socket_address.h"
#include "netlink/requests.h"

namespace shunt::netlink {
class RequestSocket;
}

namespace shunt::netlink::ipvs {

// What names a virtual server. Servers that are found by a mark of their packets (fwmark) are
// others' business: listings leave them out.
struct ServerKey {
  net::SocketAddress address;
  net::Protocol protocol = net::Protocol::Tcp;
  auto operator<=>(const ServerKey&) const = default;
};

inline constexpr std::uint32_t kPersistent = 0x1;  // clients stay with a destination for `timeout`
inline constexpr std::uint32_t kHashPort = 0x10;   // mh, sh: the source port is hashed as well

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order of telling; there are few
struct Server {
  ServerKey key;
  std::string scheduler;    // "rr"
  std::uint32_t flags = 0;  // as set by whoever made it: the kernel's own bit (hashed) is left out
  std::chrono::seconds timeout{};  // with kPersistent
  std::uint32_t netmask = 0;       // 0: single addresses (255.255.255.255, 128 bits)
  auto operator<=>(const Server&) const = default;
};

struct Destination {
  net::SocketAddress address;
  std::uint32_t weight = 1;
  std::uint32_t forwarding = 0;  // 0: masquerading (NAT), the only one that is written
  // Read only.
  std::uint32_t active_connections = 0;
  std::uint32_t inactive_connections = 0;
};

struct Timeouts {  // zero: keeps what the kernel has
  std::chrono::seconds tcp{};
  std::chrono::seconds tcp_fin{};
  std::chrono::seconds udp{};
};

// Commands that the kernel obeys one by one, in this order.
class Commands {
 public:
  void add(const Server& server);
  void change(const Server& server);
  void remove(const ServerKey& server);  // and its destinations
  void add(const ServerKey& server, const Destination& destination);
  void change(const ServerKey& server, const Destination& destination);
  void remove(const ServerKey& server, const net::SocketAddress& destination);
  std::size_t size() const { return requests_.count(); }
  bool empty() const { return requests_.empty(); }
  void clear() { requests_.clear(); }  // the memory is kept for the next ones

 private:
  friend class Socket;
  Requests requests_;
};

struct Refused {
  std::size_t index = 0;  // of the command
  // Exists, NotFound (of the server or of the destination), Unsupported (no such scheduler),
  // Invalid, Denied, Again (no memory). Its text names the command.
  Error error;
};

class Socket {
 public:
  // Errc::Unsupported: this kernel has no IPVS, or may not load it.
  static Result<std::unique_ptr<Socket>> open();
  ~Socket();

  // All virtual servers of the family. A dump that a change interrupted is done again, a few times.
  Result<std::vector<Server>> servers(net::Family family);
  // NotFound when there is no such server.
  Result<std::vector<Destination>> destinations(const ServerKey& server);

  // Sends all commands, 64 KiB or 500 of them in one packet, and reads every answer. `refused` has
  // those that the kernel did not obey, in order; it obeyed all others. A failure: nothing is known
  // of any (Errc::Stale), or none was sent.
  Result<> send(const Commands& commands, std::vector<Refused>& refused);

  Result<> set_timeouts(const Timeouts& timeouts);
  Result<Timeouts> timeouts();

 private:
  explicit Socket(std::unique_ptr<RequestSocket> socket);
  std::unique_ptr<RequestSocket> socket_;
};

}  // namespace shunt::netlink::ipvs
