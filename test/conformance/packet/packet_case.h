// A case of the packet-flow kind as values (../README.md says what they mean).
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/cidr.h"
#include "net/socket_address.h"

namespace shunt::conformance::packet {

enum class Place : std::uint8_t { PodLocal, PodRemote, External, Node, Localhost };
enum class Verdict : std::uint8_t { Endpoints, Reject, Drop, NoMatch, NotSeen };
std::string_view to_string(Place place);
std::string_view to_string(Verdict verdict);

struct Expectation {
  Verdict verdict = Verdict::Endpoints;
  std::vector<net::SocketAddress> endpoints;
  std::optional<bool> snat;                  // not judged when absent
  std::vector<net::SocketAddress> snat_for;  // rewritten although snat is false
};

struct Flow {
  std::string name;
  Place place = Place::PodLocal;
  net::SocketAddress from;  // port 0: any
  bool assign = false;      // add the source address to the node for this flow
  net::SocketAddress to;
  net::Protocol protocol = net::Protocol::Tcp;
  Expectation expect;
  bool sticky = false;
  std::string same_endpoint_as;
  std::size_t count = 0;  // 0: as many as it takes
  std::chrono::seconds gap{0};
  std::size_t sample = 0;  // 0: every endpoint must be reached
  std::string stray_segment_after;
  std::vector<std::string> needs;
};

enum class AgentAction : std::uint8_t { None, Restart, Down, DownThenRestart };

// Service ports with policy Local that have endpoints elsewhere only.
struct Gauges {
  std::size_t internal_without_local = 0;
  std::size_t external_without_local = 0;
};

struct Step {
  std::vector<nlohmann::json> remove;
  std::vector<nlohmann::json> apply;
  AgentAction agent = AgentAction::None;
  bool remove_rules = false;
  std::chrono::seconds wait{0};
  bool keep_sending = false;
  std::optional<Gauges> gauges;
  std::vector<Flow> flows;
};

struct Settings {
  std::string node_name;
  bool ipv4 = true;
  bool ipv6 = true;
  std::vector<net::IpAddress> node_addresses;
  std::vector<net::IpAddress> extra_local_addresses;
  std::vector<std::string> service_cidrs;
  std::vector<std::string> node_port_addresses;
  bool masquerade_all = false;
  bool localhost_node_ports = false;
  std::string detect_local_mode;  // as in the bank, "none" included
  std::vector<std::string> detect_local_cidrs;
  std::string detect_local_interface;
  std::string detect_local_prefix;
  // Of an agent in mode ipvs; only the virtual-servers kind says something here.
  std::string ipvs_scheduler;  // "": the agent's default
  std::vector<std::string> ipvs_exclude_cidrs;
  bool bridge_links = false;
  std::string link_name;
};

struct Case {
  std::string id;
  std::vector<std::string> modes;
  std::vector<std::string> needs;
  Settings settings;
  std::vector<nlohmann::json> nodes;
  std::vector<Step> steps;
};

// `profile` chooses among expectations that differ ("expectIn"). Throws what nlohmann::json throws
// on a case that is not one.
Case parse_case(const nlohmann::json& json, const std::string& profile);

// The ranges of the node under test and of the others, from spec.podCIDRs of the Node objects.
std::vector<net::Cidr> pod_ranges(const Case& packet_case, bool of_this_node);

}  // namespace shunt::conformance::packet
