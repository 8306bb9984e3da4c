// Where packets come out: raw sockets in every place see what is delivered there, after all
// rewriting and with the addresses that an application would see. Each packet carries a number that
// its sender chose: the sequence number of a TCP SYN, the payload of a datagram, the tag of an SCTP
// INIT.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "net/socket_address.h"
#include "netns/lab.h"

namespace shunt::conformance::packet {

struct Sighting {
  std::string place;
  net::Protocol protocol = net::Protocol::Tcp;
  net::SocketAddress from;
  net::SocketAddress to;
  std::uint32_t id = 0;
  bool first = false;  // opens a connection: SYN alone, INIT, any datagram
  std::uint8_t tcp_flags = 0;
};

inline constexpr std::uint8_t kTcpSyn = 0x02;
inline constexpr std::uint8_t kTcpAck = 0x10;
inline constexpr std::uint32_t kUdpMark = 0x73686e74;  // in front of the number: our datagrams only

class Sightings {
 public:
  Sightings(const lab::Lab& lab, const std::vector<std::string>& places);

  // What was delivered since the last call.
  std::vector<Sighting> drain();
  // The same, once there is something to look at, there is an error on a socket of `others`, or the
  // time is over. Nobody who waits for silence may be in a hurry: each look costs.
  std::vector<Sighting> wait(std::chrono::milliseconds time, const std::vector<int>& others = {});

 private:
  std::vector<Sighting> drain(const std::vector<pollfd>& polled);
  std::vector<pollfd> descriptors() const;

  struct Ear {
    std::string place;
    net::Protocol protocol;
    net::Family family;
    UniqueFd fd;
  };
  std::vector<Ear> ears_;
};

// The transport header and what follows. Nothing when the packet is none of ours by its shape.
std::optional<Sighting> parse_transport(
    net::Protocol protocol, std::span<const std::uint8_t> bytes);

}  // namespace shunt::conformance::packet
