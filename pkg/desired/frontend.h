// What must happen to packets that are sent to one address and port of a Service, in no kernel's
// words.
//
// The frontend is the unit of everything below: back ends keep kernel state by frontend, so the
// cost of a change is the cost of the frontends it touches. Plans are immutable and shared; pure
// values.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/socket_address.h"

namespace shunt::desired {

struct FrontendKey {
  net::IpAddress ip;
  net::Protocol protocol = net::Protocol::Tcp;
  net::Port port{};
  auto operator<=>(const FrontendKey&) const = default;
};
std::string to_string(const FrontendKey& key);  // "10.0.0.1:80/TCP"

using EndpointList = std::vector<net::SocketAddress>;  // sorted, without duplicates
using EndpointListPtr = std::shared_ptr<const EndpointList>;

// spec/semantics.md §6: nobody, anywhere, could serve: refuse. Somebody could, but policy Local
// leaves nobody here: drop.
enum class Fate : std::uint8_t { Balance, Refuse, Drop };

struct FrontendPlan {
  std::string service;  // "ns/name:port", for people
  Fate fate = Fate::Refuse;
  EndpointListPtr endpoints;  // fate Balance: not empty
  EndpointListPtr hairpin;  // those on this node: what they send to themselves through the Service
                            // is masqueraded
};
bool operator==(const FrontendPlan& a, const FrontendPlan& b);  // by value, not by pointer

}  // namespace shunt::desired

template <>
struct std::hash<shunt::desired::FrontendKey> {
  std::size_t operator()(const shunt::desired::FrontendKey& key) const {
    return hash_value(key.ip) ^ (std::size_t{shunt::net::number(key.port)} << 8 |
                                 static_cast<std::size_t>(key.protocol)) *
                                    0x9e3779b97f4a7c15ULL;
  }
};
