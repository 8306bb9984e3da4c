// The sets, chains and rules of a program as netlink messages; the part of wire that needs
// libnftnl's builders.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/nft/ruleset.h"

namespace shunt::netlink {
class Batch;
}

namespace shunt::backend::nft {

// The kernel gives an element 256 bytes of userdata; nft itself stops at 128 characters of comment,
// and a listing with a longer one could not be loaded again.
inline constexpr std::size_t kMaxComment = 127;

void put_fragment(netlink::Batch& batch, const Fragment& fragment, std::uint8_t family);
// The chains of the fragment, emptied if they are there, and its rules.
void put_rules_anew(netlink::Batch& batch, const Fragment& fragment, std::uint8_t family);
void put_removal(netlink::Batch& batch, const Removal& removal, std::uint8_t family);

}  // namespace shunt::backend::nft
