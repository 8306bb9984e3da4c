// Writes the elements of a cluster into the program's sets, and nothing else: no plans, no mirror,
// no comparison. Built on the project's netlink library (libmnl) as the back end is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shunt::bench {

struct WriteFloor {
  double seconds = 0;  // everything, in transactions of one size
  std::uint64_t elements = 0;
  double dump_seconds = 0;        // reads it all back and looks at nothing; when asked for
  std::vector<double> single_ms;  // transactions of one element each, with all of that in place
};

struct WriteSize {
  std::size_t services = 0;
  std::size_t endpoints = 0;  // a Service
  std::size_t elements_a_transaction = 20'000;
  std::size_t singles = 0;
  bool dump = false;
};

// In the network namespace of the calling thread, which holds no table of ours. Throws.
WriteFloor write_elements(const WriteSize& size);

}  // namespace shunt::bench
