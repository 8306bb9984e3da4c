// A raw nf_tables netlink socket for the benchmark's own looks at the kernel, which never go by
// what the measured program says of itself.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "base/unique_fd.h"

namespace shunt::bench {

// In the network namespace of the calling thread. Throws.
UniqueFd open_nft_socket(bool subscribe);

struct NftMessage {
  std::uint16_t type = 0;                    // NFT_MSG_*
  std::span<const std::uint8_t> attributes;  // after nfgenmsg
};
// Calls `each` for every nf_tables message of a datagram.
void for_each_message(
    std::span<const std::uint8_t> datagram, const std::function<void(const NftMessage&)>& each);

std::string_view text_attribute(std::span<const std::uint8_t> attributes, std::uint16_t type);
std::uint32_t number_attribute(std::span<const std::uint8_t> attributes, std::uint16_t type);

}  // namespace shunt::bench
