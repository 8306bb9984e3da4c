// Lists of ranges, by family.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/cidr.h"

namespace shunt::node {

net::Cidr whole_range(net::Family family);  // 0.0.0.0/0, ::/0

std::vector<net::Cidr> of_family(std::span<const net::Cidr> ranges, net::Family family);
// As an API object writes them: what is no range counts as absent.
std::vector<net::Cidr> of_family(std::span<const std::string> ranges, net::Family family);

// Where only one range of a family counts, it is the first (spec/config.md §7).
std::optional<net::Cidr> first_of_family(std::span<const net::Cidr> ranges, net::Family family);

}  // namespace shunt::node
