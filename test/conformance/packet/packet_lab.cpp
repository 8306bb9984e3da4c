#include "packet/packet_lab.h"

#include <algorithm>

namespace shunt::conformance::packet {
namespace {

// Where clients sit that are neither pods nor nodes: the sources of the case's flows, one by one,
// so that no range has to be known beforehand.
void add_outside_clients(const Case& packet_case, lab::LabSpec& spec) {
  for (const Step& step : packet_case.steps) {
    for (const Flow& flow : step.flows) {
      const bool covered = net::any_contains(spec.outside_hosts, flow.from.ip);
      const bool outside = flow.place == Place::External || flow.place == Place::PodRemote;
      if (outside && !covered) {
        spec.outside_hosts.push_back(
            {flow.from.ip, static_cast<std::uint8_t>(flow.from.ip.size() * 8)});
      }
    }
  }
}

}  // namespace

lab::LabSpec lab_spec_of(const Case& packet_case) {
  const Settings& settings = packet_case.settings;
  lab::LabSpec spec = lab::default_lab_spec();
  spec.node_addresses = settings.node_addresses;
  spec.node_speaks_ipv6 = settings.ipv6;
  spec.links = settings.bridge_links ? lab::LabSpec::Links::Bridge : lab::LabSpec::Links::Veth;
  spec.link_name = settings.link_name;
  spec.shared_pods = pod_ranges(packet_case, true);
  for (const net::Cidr& range : pod_ranges(packet_case, false)) {
    if (std::ranges::find(spec.outside_hosts, range) == spec.outside_hosts.end()) {
      spec.outside_hosts.push_back(range);
    }
  }
  add_outside_clients(packet_case, spec);
  return spec;
}

}  // namespace shunt::conformance::packet
