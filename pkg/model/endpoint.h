// The endpoints of a Service's ports in one address family, merged from its EndpointSlices
// (spec/semantics.md §4). Pure: no I/O, no log.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/endpoint_slice.h"
#include "model/ipvs_annotations.h"
#include "model/service_port.h"
#include "net/socket_address.h"

namespace shunt::model {

struct Endpoint {
  net::SocketAddress address;
  bool local = false;  // nodeName equals this node's name
  bool ready = false;
  bool serving = false;
  bool terminating = false;
  std::uint16_t weight = 1;             // in IPVS, as the Service's annotations have it
  std::vector<std::string> zone_hints;  // sorted, without duplicates
  std::vector<std::string> node_hints;  // sorted, without duplicates
  bool operator==(const Endpoint&) const = default;
};

// All endpoints of one port, whatever their condition, sorted by address and port.
struct PortEndpoints {
  std::string port;  // port name
  net::Protocol protocol = net::Protocol::Tcp;
  std::vector<Endpoint> endpoints;  // never empty
  bool operator==(const PortEndpoints&) const = default;
};

struct ServiceEndpoints {
  std::vector<PortEndpoints> ports;  // sorted by (port, protocol)
  std::vector<std::string> issues;   // what was set aside, a sentence each, naming the slice
  bool operator==(const ServiceEndpoints&) const = default;
};
const PortEndpoints* find(
    const ServiceEndpoints& endpoints, std::string_view port, net::Protocol protocol);

// `slices` are those of one Service, in any order: the answer does not depend on it. Slices of
// another address type contribute nothing. A terminating duplicate never replaces another one.
// `weights`: what the Service's annotations say of them; null: nothing.
ServiceEndpoints merge_slices(
    std::span<const std::shared_ptr<const kube::EndpointSlice>> slices,
    net::Family family,
    std::string_view node_name,
    const EndpointWeights* weights = nullptr);

// Number of distinct addresses among endpoints that are ready and local, any port
// (spec/semantics.md §11).
std::size_t local_ready_addresses(const ServiceEndpoints& endpoints);

}  // namespace shunt::model
