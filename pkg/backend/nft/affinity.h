// Session affinity: the one part of the table that grows, by a map and two chains for each service
// port that has it, and by no more for its endpoints or clients.
//
//   affinity-<group>   client -> endpoint; packets write it, each element with its timeout
//   sticky-<group>     DNAT to what the map says; falls through for a client that is new
//   remember-<group>-<timeout>s...   writes the map, when NAT has chosen
//
// Frontends lead to them by the verdict maps sticky-* and remember-*. All frontends of one service
// port lead to the same ones: that is how they share a client's endpoint. <group> is the port's
// ClusterIP. What policy Local chose is kept apart (affinity-local-<group>), since policy Cluster
// may choose endpoints that policy Local must not; an endpoint that both may use is remembered in
// both. (One map for all ports, keyed by client and frontend, would need no growth. But the kernel
// lists a set in time that is quadratic in its size: to forget an endpoint among half a million
// clients took over twenty seconds.)
//
// In IPv6 the map holds addresses alone where all endpoints of the port have one port number, which
// is then in the rules: nft before 1.1 aborts when it reads a rule that writes an IPv6 address and
// a port into a map, and a saved ruleset that cannot be loaded leaves a host without its firewall.
// Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "backend/nft/ruleset.h"
#include "desired/frontend.h"

namespace shunt::backend::nft {

struct Affinity : desired::Affinity {
  std::optional<net::Port> port;  // of all endpoints; not in the map then
  bool operator==(const Affinity&) const = default;
};
// Of a frontend with endpoints and affinity; others have none.
std::optional<Affinity> affinity_of(const desired::FrontendPlan& plan);

std::string affinity_map(const Affinity& affinity, bool local);
std::string sticky_chain(const Affinity& affinity, bool local);
std::string remember_chain(const Affinity& affinity);

// The map and the chain that reads it; the chain that writes.
Fragment affinity_memory(const Affinity& affinity, bool local);
Fragment affinity_writer(const Affinity& affinity);

// Of a table that an earlier run left.
bool is_affinity_map(std::string_view set);
bool is_affinity_chain(std::string_view chain);
std::size_t affinity_chain_rules(std::string_view chain);  // how many rules such a chain must have
std::optional<std::string> map_of_sticky_chain(std::string_view chain);

// Everything above once, for the version of the program.
Fragment affinity_sample(net::Family family);

}  // namespace shunt::backend::nft
