// A bare program over libnl-genl that writes virtual servers and destinations, and reads them back:
// what any agent that speaks to IPVS has to do, and nothing else.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "net/socket_address.h"

struct nl_msg;
struct nl_sock;

namespace shunt::bench {

struct VirtualServer {
  net::SocketAddress address;  // TCP
  std::vector<net::SocketAddress> destinations;
};

// In the network namespace of the thread that makes it. Everything throws.
class IpvsFloor {
 public:
  IpvsFloor();
  ~IpvsFloor();
  IpvsFloor(const IpvsFloor&) = delete;
  IpvsFloor& operator=(const IpvsFloor&) = delete;

  // 64 KiB a packet; no answer is asked for but the last.
  void write_in_packets(const std::vector<VirtualServer>& servers);
  // As ipvsadm does: a command, then its answer.
  void write_one_by_one(const std::vector<VirtualServer>& servers);
  // All virtual servers, and the destinations of each of `servers`; returns how many messages came.
  std::size_t read(const std::vector<VirtualServer>& servers);
  void flush();

 private:
  struct FreeMessage {
    void operator()(nl_msg* message) const noexcept;
  };
  using Message = std::unique_ptr<nl_msg, FreeMessage>;
  Message begin(int command, int flags) const;
  void put_server(nl_msg* message, const net::SocketAddress& server, bool whole) const;
  Message server_command(const VirtualServer& server) const;
  Message destination_command(
      const net::SocketAddress& server, const net::SocketAddress& destination) const;
  template <typename Each>
  void commands(const std::vector<VirtualServer>& servers, const Each& each) const;
  void wait_for_answer(Message message);
  std::size_t ask(Message question);

  nl_sock* socket_;
  int family_;
};

}  // namespace shunt::bench
