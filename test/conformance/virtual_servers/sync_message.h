// Connections in the words of the protocol by which one IPVS tells another of its own (version 1 of
// include/net/ip_vs.h's and net/netfilter/ipvs/ip_vs_sync.c's messages). A kernel that listens as
// "backup" enters them in its table as told: real server, state and all. So a case's connections
// are in the kernel, and counted by it, without anybody at either end.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "net/socket_address.h"

namespace shunt::conformance::virtual_servers {

struct Connection {
  net::Protocol protocol = net::Protocol::Tcp;
  net::SocketAddress client;
  net::SocketAddress server;  // the virtual one
  net::SocketAddress real;
  bool active = true;              // TCP: established, else waiting for the last FIN
  std::chrono::seconds timeout{};  // the kernel forgets it after so long
};

// The kernel takes any number up to 255 that fits into its buffer, which holds one packet.
inline constexpr std::size_t kConnectionsPerMessage = 20;

std::string sync_message(std::uint8_t sync_id, const std::vector<Connection>& connections);

}  // namespace shunt::conformance::virtual_servers
