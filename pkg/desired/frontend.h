// What must happen to packets that are sent to one address and port of a Service, in no kernel's
// words.
//
// The frontend is the unit of everything below: back ends keep kernel state by frontend, so the
// cost of a change is the cost of the frontends it touches. Plans are immutable and shared; pure
// values.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/cidr.h"
#include "net/socket_address.h"

namespace shunt::desired {

// A frontend without an address (0.0.0.0, ::) is a NodePort: that port on whichever addresses of
// the node serve NodePorts. No Service can claim the unspecified address itself.
struct FrontendKey {
  net::IpAddress ip;
  net::Protocol protocol = net::Protocol::Tcp;
  net::Port port{};
  auto operator<=>(const FrontendKey&) const = default;
};
FrontendKey node_port_key(net::Family family, net::Protocol protocol, net::Port port);
bool is_node_port(const FrontendKey& key);
std::string to_string(const FrontendKey& key);  // "10.0.0.1:80/TCP", "*:30080/TCP"

using EndpointList = std::vector<net::SocketAddress>;  // sorted, without duplicates
using EndpointListPtr = std::shared_ptr<const EndpointList>;

// spec/semantics.md §6: nobody, anywhere, could serve: refuse. Somebody could, but policy Local
// leaves nobody here: drop.
enum class Fate : std::uint8_t { Balance, Refuse, Drop };

// How traffic to the frontend is treated on its way in (spec/semantics.md §6).
enum class Reach : std::uint8_t {
  Internal,       // a ClusterIP: masqueraded when no local pod sent it
  External,       // externalTrafficPolicy Cluster: always masqueraded
  ExternalLocal,  // externalTrafficPolicy Local: outsiders get `local_endpoints` and keep their
                  // address; pods and the node itself get `endpoints`
};

// Clients that stay with an endpoint. All frontends of one service port share what is remembered,
// which is kept under the port's ClusterIP; what policy Local chose is kept apart.
struct Affinity {
  std::chrono::seconds timeout{};
  FrontendKey group;           // the frontend of the ClusterIP
  bool local_policy = false;   // `endpoints` was chosen by policy Local
  bool cluster_memory = true;  // some frontend of the port follows policy Cluster
  bool local_memory = false;   // some frontend of the port follows policy Local
  bool operator==(const Affinity&) const = default;
};

// What annotations of the Service ask of IPVS.
struct IpvsWishes {
  std::string scheduler;  // "": the configured one
  // Of `endpoints` and `local_endpoints` of the plan; sorted. Those that are not listed have weight
  // 1.
  std::vector<std::pair<net::SocketAddress, std::uint16_t>> weights;
  bool operator==(const IpvsWishes&) const = default;
};

struct FrontendPlan {
  std::string service;  // "ns/name:port", for people
  Reach reach = Reach::Internal;
  Fate fate = Fate::Refuse;         // of traffic from outside, for ExternalLocal
  bool balancer = false;            // the address of a load balancer, and no externalIP
  bool internal_local = false;      // Internal: `endpoints` was chosen by policy Local
  net::Port health_check_port{};    // Internal: healthCheckNodePort of the Service; 0: none
  EndpointListPtr endpoints;        // null: none
  EndpointListPtr local_endpoints;  // ExternalLocal only
  std::optional<Affinity> affinity;
  std::shared_ptr<const std::vector<net::Cidr>> sources;  // null: anybody may connect
  // UDP: endpoints whose tracked flows are kept, whatever the policies (serving, be they ready or
  // not; spec/conntrack-and-metrics.md §1).
  EndpointListPtr serving;
  std::shared_ptr<const IpvsWishes> ipvs;  // null: none
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
