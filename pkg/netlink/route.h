// The addresses of this host, and word of their changes: libnl-route. The one user of it.
//
// One thread, in one network namespace: that of the thread that opens it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/handle.h"
#include "base/result.h"
#include "net/ip_address.h"

struct nl_sock;
extern "C" void nl_socket_free(struct nl_sock*);

namespace shunt::netlink {

struct HostAddress {
  net::IpAddress address;
  std::uint8_t prefix_length = 0;
  int interface_index = 0;
  std::string interface_name;  // "" when it went in between
  std::uint32_t flags = 0;     // IFA_F_* of <linux/if_addr.h>: tentative, deprecated, secondary...
  auto operator<=>(const HostAddress&) const = default;
};

class AddressMonitor {
 public:
  // Reads all addresses; from then on no change goes unseen.
  static Result<AddressMonitor> open();

  // Sorted; as of open() or the last take_changes().
  const std::vector<HostAddress>& addresses() const { return addresses_; }

  int fd() const;  // readable: call take_changes()

  // Whether addresses() are others now; does not wait. Every word of a change is a reason to read
  // all of them again, since words can be lost (ENOBUFS) and a name can change without one. When
  // that fails they stay as they were, and the next call tries again.
  bool take_changes();

 private:
  using Socket = Handle<nl_sock, nl_socket_free>;
  AddressMonitor(Socket events, Socket queries)
      : events_(std::move(events)), queries_(std::move(queries)) {}

  Result<std::vector<HostAddress>> read_all();

  Socket events_;
  Socket queries_;
  std::vector<HostAddress> addresses_;
  bool outdated_ = false;
};

}  // namespace shunt::netlink
