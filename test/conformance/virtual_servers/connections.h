// The connections that a case says are open, in the node's IPVS.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "netns/netns.h"
#include "virtual_servers/server_table.h"
#include "virtual_servers/sync_message.h"

namespace shunt::conformance::virtual_servers {

class Connections {
 public:
  // A link from `teller` to the node, over which the node's IPVS is told. On the node it has no
  // address, so whatever looks for the node's addresses does not see it.
  Connections(const lab::Netns& node, const lab::Netns& teller, int patience);

  // Opens and ends what makes the difference to what is open now, of those real servers that the
  // kernel has, and waits until the kernel counts so. Throws std::runtime_error when it does not.
  void set(const CountsByReal& wanted);

  CountsByReal counted() const;  // by the kernel

 private:
  using Key = std::pair<ServerName, net::SocketAddress>;

  void listen();
  void tell(const std::vector<Connection>& connections) const;
  std::vector<Connection> end_all_but(const CountsByReal& wanted);
  std::vector<Connection> begin(const CountsByReal& wanted);
  std::vector<Connection> opened(const Key& key, const Counts& counts);
  bool are_counted(const CountsByReal& seen) const;

  const lab::Netns* node_;
  const lab::Netns* teller_;
  int patience_;
  bool listens_ = false;
  std::uint16_t last_port_ = 20'000;
  std::map<Key, std::pair<Counts, std::vector<Connection>>> open_;
};

}  // namespace shunt::conformance::virtual_servers
