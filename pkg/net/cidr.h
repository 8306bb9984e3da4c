// A prefix, always canonical: host bits are zero.
#pragma once

#include <compare>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/ip_address.h"

namespace shunt::net {

struct Cidr {
  IpAddress base;
  std::uint8_t prefix_length = 0;
  auto operator<=>(const Cidr&) const = default;
};

// Sloppy as parse_ip; host bits are cleared. An IPv4-mapped IPv6 prefix of at least /96 counts as
// IPv4.
std::optional<Cidr> parse_cidr(std::string_view text);
std::string to_string(const Cidr& cidr);
bool contains(const Cidr& cidr, const IpAddress& ip);
bool any_contains(std::span<const Cidr> cidrs, const IpAddress& ip);
IpAddress last_address(const Cidr& cidr);

// An inclusive range of addresses of one family.
struct IpRange {
  IpAddress first;
  IpAddress last;
  auto operator<=>(const IpRange&) const = default;
};

// The same addresses as sorted ranges that neither overlap nor touch: what the kernel's interval
// sets demand. All of `cidrs` must be of one family.
std::vector<IpRange> merged_ranges(const std::vector<Cidr>& cidrs);

// Those of `ranges` (sorted, apart) that `hole` does not cover; a range may fall into two.
std::vector<IpRange> without(const std::vector<IpRange>& ranges, const IpRange& hole);
IpRange all_addresses(Family family);
IpRange loopback_range(Family family);

// The address after `ip`, or nothing after the last one of the family.
std::optional<IpAddress> next_address(const IpAddress& ip);
std::optional<IpAddress> previous_address(const IpAddress& ip);

}  // namespace shunt::net
