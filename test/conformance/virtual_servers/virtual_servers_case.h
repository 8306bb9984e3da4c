// A case of the virtual-servers kind as values (../README.md says what they mean).
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "net/ip_address.h"
#include "packet/packet_case.h"
#include "virtual_servers/server_table.h"

namespace shunt::conformance::virtual_servers {

struct Weight {
  ServerName server;
  net::SocketAddress real;
  std::uint32_t weight = 0;
};

struct Step {
  std::vector<nlohmann::json> remove;
  std::vector<nlohmann::json> apply;
  bool restart = false;
  std::string scheduler;        // from this step on; "": as before
  std::vector<Weight> disturb;  // by hand, beforehand
  std::optional<CountsByReal> connections;
  std::chrono::seconds wait{0};
  // Each part is judged when it is there.
  std::optional<nlohmann::json> servers;  // a canonical table
  std::optional<std::vector<net::IpAddress>> bound;
};

struct Interface {
  std::string name;
  std::vector<net::IpAddress> addresses;
};

struct Case {
  std::string id;
  net::Family family = net::Family::IPv4;
  bool debatable = false;
  packet::Settings settings;  // what the agent is configured with
  std::string zone;
  std::vector<Interface> interfaces;
  nlohmann::json found_servers = nlohmann::json::object();
  std::vector<net::IpAddress> found_bound;
  std::vector<Step> steps;
};

// Throws what nlohmann::json throws, or std::invalid_argument, on a case that is not one.
Case parse_case(const nlohmann::json& json);

// Addresses that somebody else can reach: no loopback, nothing link-local.
std::vector<net::IpAddress> node_addresses(const Case& test_case);

}  // namespace shunt::conformance::virtual_servers
