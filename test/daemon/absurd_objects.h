// Objects that no API server should let through, one idea each, and what must become of them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shunt::test {

struct Absurd {
  std::string name;  // of a Service in "ns", which is absurd itself or has an absurd slice
  std::string ip;    // its ClusterIP, once it has a good one
  std::vector<nlohmann::json> objects;
  std::vector<std::string> works;    // frontends that have endpoints all the same, "IP:PORT"
  std::vector<std::string> refuses;  // frontends that are there, without an endpoint
  std::size_t node_ports = 0;        // NodePorts that work
  std::string named;                 // what the log must name; "": nothing of it was lost
};

// `with_json`: also what protobuf cannot carry, values of a wrong type.
std::vector<Absurd> absurd_objects(bool with_json);

// What each of them should have been: a Service at `ip`, port 80, with 10.64.0.4 as its endpoint.
std::vector<nlohmann::json> mended(const Absurd& absurd);

// In a namespace of 63 characters, the same as its name; the port's name is as long as one can be.
std::vector<nlohmann::json> longest_names(const std::string& ip);

}  // namespace shunt::test
