// The sets and maps of the constant program, and the names of those that come in rows. Pure.
#pragma once

#include <string>
#include <vector>

#include "backend/nft/ruleset.h"

namespace shunt::backend::nft {

// A set that packets write into holds so many elements at most; beyond that nothing more is
// remembered, and everything else goes on.
inline constexpr std::uint32_t kDynamicSetSize = 262'144;

// In the order of SetId. `for_ipvs`: with those that only IPVS mode has.
std::vector<Set> program_sets(bool for_ipvs);

std::string place_prefix(Place place);  // "", "local-", "nodeport-", "nodeport-local-"
std::string class_name(Place place, unsigned bits);
std::string slot_map_name(Place place);

}  // namespace shunt::backend::nft
