// One load-balanced port of a Service in one address family, every value resolved
// (spec/semantics.md §1-§3). Pure: no I/O, no log.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kube/service.h"
#include "model/ipvs_annotations.h"
#include "net/cidr.h"
#include "net/socket_address.h"

namespace shunt::model {

// A service port and its endpoints belong together iff these are equal: port name and protocol both
// count.
struct ServicePortName {
  kube::ObjectKey service;
  std::string port;  // may be empty
  net::Protocol protocol = net::Protocol::Tcp;
  auto operator<=>(const ServicePortName&) const = default;
};
std::string to_string(
    const ServicePortName& name);  // "ns/name:port/TCP"; the port name may be empty
std::string display_name(
    const ServicePortName& name);  // "ns/name" or "ns/name:port": comments and logs

struct ServicePort {
  ServicePortName name;
  net::IpAddress cluster_ip;
  net::Port port{};
  net::Port node_port{};                           // 0: none
  std::vector<net::IpAddress> external_ips;        // of this family, in the order of the object
  std::vector<net::IpAddress> load_balancer_vips;  // ingress entries of mode VIP
  std::vector<net::Cidr> source_ranges;            // empty: anybody
  std::optional<std::chrono::seconds> affinity;    // ClientIP affinity and its timeout
  bool external_local = false;  // externalTrafficPolicy Local and externally reachable by type
  bool internal_local = false;  // internalTrafficPolicy Local
  net::Port health_check_node_port{};   // 0: none
  std::optional<IpvsAnnotations> ipvs;  // nothing: no annotation asks for anything
  bool operator==(const ServicePort&) const = default;

  // spec/semantics.md §2, derived predicates.
  bool externally_accessible() const {
    return number(node_port) != 0 || !load_balancer_vips.empty() || !external_ips.empty();
  }
  bool uses_cluster_endpoints() const { return !internal_local || externally_accessible(); }
  bool uses_local_endpoints() const {
    return internal_local || (external_local && externally_accessible());
  }
};

// Why a Service yields no ports in a family.
enum class Skip : std::uint8_t {
  Headless,
  NoClusterIp,
  ExternalName,
  OtherProxy,
  NoAddressInFamily
};
std::string_view to_string(Skip skip);  // "headless", "no-cluster-ip", "external-name",
                                        // "other-proxy", "no-address-in-family"

struct ServicePorts {
  std::vector<ServicePort>
      ports;  // sorted by name; a later duplicate of a name replaced the earlier one
  std::optional<Skip> skipped;
  // Values that were set aside, a sentence each ("port \"x\": unknown protocol \"QUIC\""). The rest
  // of the Service works.
  std::vector<std::string> issues;
  bool operator==(const ServicePorts&) const = default;
};

ServicePorts service_ports(const kube::Service& service, net::Family family);

}  // namespace shunt::model
