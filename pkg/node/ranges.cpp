#include "node/ranges.h"

#include <algorithm>
#include <iterator>

namespace shunt::node {

net::Cidr whole_range(net::Family family) { return {net::IpAddress{family, {}}, 0}; }

std::vector<net::Cidr> of_family(std::span<const net::Cidr> ranges, net::Family family) {
  std::vector<net::Cidr> out;
  std::ranges::copy_if(ranges, std::back_inserter(out), [&](const net::Cidr& range) {
    return range.base.family == family;
  });
  return out;
}

std::vector<net::Cidr> of_family(std::span<const std::string> ranges, net::Family family) {
  std::vector<net::Cidr> out;
  for (const std::string& text : ranges) {
    const auto range = net::parse_cidr(text);
    if (range && range->base.family == family) {
      out.push_back(*range);
    }
  }
  return out;
}

std::optional<net::Cidr> first_of_family(std::span<const net::Cidr> ranges, net::Family family) {
  const auto found = std::ranges::find_if(
      ranges, [&](const net::Cidr& range) { return range.base.family == family; });
  return found == ranges.end() ? std::nullopt : std::optional(*found);
}

}  // namespace shunt::node
