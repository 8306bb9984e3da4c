#include "backend/nft/program_sets.h"

#include <string>
#include <utility>

namespace shunt::backend::nft {

std::string place_prefix(Place place) {
  switch (place) {
    case Place::Plain:
      return "";
    case Place::Local:
      return "local-";
    case Place::NodePort:
      return "nodeport-";
    case Place::NodePortLocal:
      return "nodeport-local-";
  }
  return "";
}

std::string class_name(Place place, unsigned bits) {
  return place_prefix(place) + "class-" + std::to_string(1U << bits);
}

std::string slot_map_name(Place place) { return place_prefix(place) + "endpoints"; }

namespace {

Set keys(SetId id, const char* name, KeyShape shape, const char* comment) {
  Set set;
  set.id = id;
  set.name = name;
  set.shape = shape;
  set.comment = comment;
  return set;
}
Set counted(Set set) {
  set.counter = true;
  return set;
}
Set ranges(Set set) {
  set.interval = true;
  return set;
}
Set verdicts(Set set) {
  set.holds = Set::Holds::Verdicts;
  return set;
}
Set written_by_packets(Set set) {
  set.size = kDynamicSetSize;
  return set;
}

}  // namespace

std::vector<Set> program_sets(bool for_ipvs) {
  using Shape = KeyShape;
  using Id = SetId;
  std::vector<Set> sets{
      keys(Id::ClusterIps, "cluster-ips", Shape::Address, "active ClusterIPs"),
      counted(keys(
          Id::ServiceIps,
          "service-ips",
          Shape::Frontend,
          "every frontend, and its new connections")),
      counted(keys(
          Id::ServiceNodePorts,
          "service-nodeports",
          Shape::NodePort,
          "every NodePort, and its new connections")),
      keys(
          Id::ExternalIps,
          "external-ips",
          Shape::Frontend,
          "externalIPs and balancer addresses of policy Cluster"),
      keys(
          Id::ExternalNodePorts,
          "external-nodeports",
          Shape::NodePort,
          "NodePorts of policy Cluster"),
      keys(
          Id::ExternalLocalIps,
          "external-local-ips",
          Shape::Frontend,
          "externalIPs and balancer addresses of policy Local"),
      keys(
          Id::ExternalLocalNodePorts,
          "external-local-nodeports",
          Shape::NodePort,
          "NodePorts of policy Local"),
      keys(Id::RefusedIps, "refused-ips", Shape::Frontend, "frontends without endpoints"),
      keys(Id::RefusedNodePorts, "refused-nodeports", Shape::NodePort, "the same of NodePorts"),
      keys(
          Id::DroppedIps,
          "dropped-ips",
          Shape::Frontend,
          "frontends of policy Local without local endpoints"),
      keys(Id::DroppedNodePorts, "dropped-nodeports", Shape::NodePort, "the same of NodePorts"),
      keys(
          Id::RestrictedIps,
          "restricted-ips",
          Shape::Frontend,
          "balancer addresses with source ranges"),
      ranges(keys(
          Id::AllowedSources,
          "allowed-sources",
          Shape::FrontendSource,
          "who may connect to restricted-ips")),
      ranges(keys(
          Id::ServiceCidrs, "service-cidrs", Shape::Address, "ranges that ClusterIPs come from")),
      ranges(keys(Id::PodCidrs, "pod-cidrs", Shape::Address, "ranges that tell traffic of pods")),
      ranges(keys(
          Id::OutsiderCidrs,
          "outsider-cidrs",
          Shape::Address,
          "everything else, when pods can be told")),
      ranges(keys(
          Id::NodePortIps,
          "nodeport-ips",
          Shape::Address,
          "where local addresses serve NodePorts")),
      verdicts(
          keys(Id::StickyIps, "sticky-ips", Shape::Frontend, "frontends with session affinity")),
      verdicts(keys(
          Id::StickyNodePorts,
          "sticky-nodeports",
          Shape::NodePort,
          "NodePorts with session affinity")),
      verdicts(keys(
          Id::StickyLocalIps, "sticky-local-ips", Shape::Frontend, "the same for policy Local")),
      verdicts(keys(
          Id::StickyLocalNodePorts,
          "sticky-local-nodeports",
          Shape::NodePort,
          "the same for policy Local")),
      verdicts(
          keys(Id::RememberIps, "remember-ips", Shape::Frontend, "where a choice is remembered")),
      verdicts(keys(
          Id::RememberNodePorts, "remember-nodeports", Shape::NodePort, "the same of NodePorts")),
      keys(
          Id::AffinityLocal,
          "affinity-local",
          Shape::Frontend,
          "endpoints that policy Local may remember"),
      written_by_packets(
          keys(Id::Self, "self", Shape::Pair, "senders, to tell who was sent to itself")),
      written_by_packets(keys(
          Id::Answering, "answering", Shape::Frontend, "endpoints that connections were sent to")),
  };
  if (for_ipvs) {
    sets.push_back(
        keys(Id::IpvsIps, "ipvs-ips", Shape::Frontend, "frontends whose packets IPVS may want"));
    sets.push_back(keys(Id::IpvsAddresses, "ipvs-addresses", Shape::Address, "addresses of those"));
  }
  for (const Place place : kPlaces) {
    Set map = keys(
        slot_map(place),
        "",
        is_of_node_ports(place) ? Shape::NodePortSlot : Shape::FrontendSlot,
        "the endpoint in each slot of a frontend");
    map.name = slot_map_name(place);
    map.holds = Set::Holds::Endpoints;
    sets.push_back(std::move(map));
  }
  for (const Place place : kPlaces) {
    for (unsigned bits = kSmallestClassBits; bits <= kLargestClassBits; ++bits) {
      Set set = keys(
          class_set(place, bits),
          "",
          is_of_node_ports(place) ? Shape::NodePort : Shape::Frontend,
          "");
      set.name = class_name(place, bits);
      sets.push_back(std::move(set));
    }
  }
  return sets;
}

}  // namespace shunt::backend::nft
