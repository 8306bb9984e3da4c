// Reads what a node agent must read to begin, and does nothing with it: the floor of every list.
#pragma once

#include <cstdint>
#include <string>

namespace shunt::bench {

struct ListFloor {
  double seconds = 0;  // Services and EndpointSlices side by side, as agents read them
  std::uint64_t bytes = 0;
};

// `pki` is the directory of the test API server's --pki; `accept` the media types to ask for.
// Throws when a list is not answered with 200.
ListFloor read_lists(
    const std::string& host, std::uint16_t port, const std::string& pki, const std::string& accept);

}  // namespace shunt::bench
