// Counts what the program takes from the heap, on all of its threads.
#pragma once

#include <compare>
#include <cstdint>

namespace shunt::test {

struct HeapUse {
  std::uint64_t allocations = 0;
  std::uint64_t bytes = 0;
  auto operator<=>(const HeapUse&) const = default;
};

// Since the start of the program.
HeapUse heap_use();

}  // namespace shunt::test
