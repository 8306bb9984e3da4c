// What POST /_test/generate and --generate ask for, checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "test/apiserver/json.h"

namespace shunt::test_api {

// Objects to make: Services, their slices, and what every cluster has.
struct ClusterSpec {
  std::size_t services = 0;
  std::size_t endpoints = 10;  // of each Service
  std::size_t namespaces = 10;
  std::size_t nodes = 100;  // names on endpoints; only `node` becomes an object
  std::size_t zones = 3;
  std::string prefix = "load";
  bool hints = false;  // each endpoint is for its own zone
  std::vector<std::string> families{"IPv4"};
  std::string node;  // the node under test; "": none
  std::vector<std::string> node_addresses{"10.80.0.10"};
};

// Random endpoints become unready and ready again.
struct ChurnSpec {
  double rate = 0;  // events a second, evenly spread
  double seconds = 0;
};

// Every pod of one Service is replaced.
struct RollingSpec {
  std::string ns;
  std::string service;
  double seconds = 0;
};

// Every endpoint of a zone terminates and is replaced in another zone.
struct DrainSpec {
  std::string zone;
  double seconds = 0;
};

// In this order: the objects, then one after the other.
struct LoadSpec {
  std::uint64_t seed = 1;
  std::optional<ClusterSpec> cluster;
  std::optional<ChurnSpec> churn;
  std::optional<RollingSpec> rolling;
  std::optional<DrainSpec> drain;
};

Result<LoadSpec> parse_load_spec(const Json& json);

}  // namespace shunt::test_api
