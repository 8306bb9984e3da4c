// The sets and maps that the program has, and which of them belong together.
//
// Frontends come in two kinds, an address with a port and a NodePort, and some frontends have two
// lists of endpoints, the usual one and that of policy Local. So there are four places for slots
// and classes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace shunt::backend::nft {

inline constexpr unsigned kSmallestClassBits = 2;  // four slots
inline constexpr unsigned kLargestClassBits = 16;
inline constexpr unsigned kClassCount = kLargestClassBits - kSmallestClassBits + 1;

enum class SetId : std::uint8_t {
  ClusterIps,
  ServiceIps,
  ServiceNodePorts,
  ExternalIps,
  ExternalNodePorts,
  ExternalLocalIps,
  ExternalLocalNodePorts,
  RefusedIps,
  RefusedNodePorts,
  DroppedIps,
  DroppedNodePorts,
  RestrictedIps,
  AllowedSources,
  ServiceCidrs,
  PodCidrs,
  OutsiderCidrs,
  NodePortIps,
  StickyIps,
  StickyNodePorts,
  StickyLocalIps,
  StickyLocalNodePorts,
  RememberIps,
  RememberNodePorts,
  AffinityLocal,
  Self,
  Answering,
  IpvsIps,        // of the program of IPVS mode alone
  IpvsAddresses,  // and so is this
  Endpoints,      // the four maps of slots follow each other, and so do the classes below
  LocalEndpoints,
  NodePortEndpoints,
  NodePortLocalEndpoints,
  Class4,
  None = Class4 + 4 * kClassCount,  // a set outside the program
};
inline constexpr std::size_t kSetCount = static_cast<std::size_t>(SetId::None);

// Where the endpoints of a list are kept.
enum class Place : std::uint8_t { Plain, Local, NodePort, NodePortLocal };
inline constexpr Place kPlaces[] = {
    Place::Plain, Place::Local, Place::NodePort, Place::NodePortLocal};
inline Place place_of(bool node_port, bool local) {
  return static_cast<Place>((node_port ? 2 : 0) + (local ? 1 : 0));
}
inline bool is_of_node_ports(Place place) { return place >= Place::NodePort; }
inline bool is_local(Place place) { return place == Place::Local || place == Place::NodePortLocal; }
inline SetId slot_map(Place place) {
  return static_cast<SetId>(static_cast<unsigned>(SetId::Endpoints) + static_cast<unsigned>(place));
}
// The set of frontends with up to 2^bits slots.
inline SetId class_set(Place place, unsigned bits) {
  return static_cast<SetId>(
      static_cast<unsigned>(SetId::Class4) + static_cast<unsigned>(place) * kClassCount + bits -
      kSmallestClassBits);
}
struct ClassRole {
  Place place;
  unsigned bits;
};
inline std::optional<ClassRole> class_role(SetId set) {
  if (set < SetId::Class4 || set >= SetId::None) {
    return std::nullopt;
  }
  const unsigned index = static_cast<unsigned>(set) - static_cast<unsigned>(SetId::Class4);
  return ClassRole{
      static_cast<Place>(index / kClassCount), index % kClassCount + kSmallestClassBits};
}

}  // namespace shunt::backend::nft
