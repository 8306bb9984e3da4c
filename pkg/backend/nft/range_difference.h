// What turns one sorted list of ranges into another. Pure.
#pragma once

#include <algorithm>
#include <vector>

#include "net/cidr.h"

namespace shunt::backend::nft {

// Calls `remove` for each range of `now` that is not in `wanted`, then `add` for each of `wanted`
// that is not in `now`.
template <typename Remove, typename Add>
void range_difference(
    const std::vector<net::IpRange>& now,
    const std::vector<net::IpRange>& wanted,
    const Remove& remove,
    const Add& add) {
  const auto each_beyond = [](const auto& these, const auto& those, const auto& each) {
    for (const net::IpRange& range : these) {
      if (!std::binary_search(those.begin(), those.end(), range)) {
        each(range);
      }
    }
  };
  each_beyond(now, wanted, remove);
  each_beyond(wanted, now, add);
}

}  // namespace shunt::backend::nft
