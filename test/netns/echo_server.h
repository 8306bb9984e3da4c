// A server that says who it is: it greets with one line, "NAME OWN-ADDRESS PEER-ADDRESS", then
// echoes what it receives. A UDP server greets in front of each echo, and must listen on one
// address, not on all, or its answers might leave with another source.
#pragma once

#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "net/socket_address.h"
#include "netns/netns.h"

namespace shunt::lab {

class EchoServer {
 public:
  // Listens once the constructor returns; serves on a thread of its own until destroyed.
  EchoServer(
      const Netns& where,
      net::Protocol protocol,
      const net::SocketAddress& address,
      std::string name);
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;
  ~EchoServer();

 private:
  void serve_tcp();
  void serve_udp();

  std::string name_;
  UniqueFd listener_;
  UniqueFd stop_;  // an eventfd
  std::thread thread_;
};

}  // namespace shunt::lab
