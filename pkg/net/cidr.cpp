#include "net/cidr.h"

#include <algorithm>
#include <charconv>

namespace shunt::net {
namespace {

// The mask of byte `index` under a prefix.
std::uint8_t mask_of_byte(std::size_t index, unsigned prefix_length) {
  const unsigned before = static_cast<unsigned>(index) * 8;
  if (prefix_length >= before + 8) {
    return 0xff;
  }
  if (prefix_length <= before) {
    return 0;
  }
  return static_cast<std::uint8_t>(0xff00U >> (prefix_length - before));
}

}  // namespace

std::optional<Cidr> parse_cidr(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view address = text.substr(0, slash);
  const std::string_view digits = text.substr(slash + 1);
  const auto ip = parse_ip(address);
  unsigned length = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (!ip || digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  const bool mapped = ip->family == Family::IPv4 && address.find(':') != std::string_view::npos;
  if (mapped) {
    if (length < 96) {
      return std::nullopt;
    }
    length -= 96;
  }
  if (length > ip->size() * 8) {
    return std::nullopt;
  }
  Cidr cidr{*ip, static_cast<std::uint8_t>(length)};
  for (std::size_t i = 0; i < ip->size(); ++i) {
    cidr.base.bytes[i] &= mask_of_byte(i, length);
  }
  return cidr;
}

std::string to_string(const Cidr& cidr) {
  return to_string(cidr.base) + "/" + std::to_string(cidr.prefix_length);
}

bool contains(const Cidr& cidr, const IpAddress& ip) {
  if (ip.family != cidr.base.family) {
    return false;
  }
  for (std::size_t i = 0; i < ip.size(); ++i) {
    if ((ip.bytes[i] & mask_of_byte(i, cidr.prefix_length)) != cidr.base.bytes[i]) {
      return false;
    }
  }
  return true;
}

bool any_contains(std::span<const Cidr> cidrs, const IpAddress& ip) {
  return std::ranges::any_of(cidrs, [&](const Cidr& cidr) { return contains(cidr, ip); });
}

IpAddress last_address(const Cidr& cidr) {
  IpAddress last = cidr.base;
  for (std::size_t i = 0; i < last.size(); ++i) {
    last.bytes[i] |= static_cast<std::uint8_t>(~mask_of_byte(i, cidr.prefix_length));
  }
  return last;
}

std::optional<IpAddress> next_address(const IpAddress& ip) {
  IpAddress next = ip;
  for (std::size_t i = ip.size(); i-- > 0;) {
    if (++next.bytes[i] != 0) {
      return next;
    }
  }
  return std::nullopt;
}

std::vector<IpRange> merged_ranges(const std::vector<Cidr>& cidrs) {
  std::vector<IpRange> ranges;
  ranges.reserve(cidrs.size());
  for (const Cidr& cidr : cidrs) {
    ranges.push_back({cidr.base, last_address(cidr)});
  }
  std::sort(ranges.begin(), ranges.end());
  std::vector<IpRange> merged;
  for (const IpRange& range : ranges) {
    if (!merged.empty()) {
      const auto after = next_address(merged.back().last);
      if (!after || range.first <= *after) {
        merged.back().last = std::max(merged.back().last, range.last);
        continue;
      }
    }
    merged.push_back(range);
  }
  return merged;
}

std::optional<IpAddress> previous_address(const IpAddress& ip) {
  IpAddress previous = ip;
  for (std::size_t i = ip.size(); i-- > 0;) {
    if (previous.bytes[i]-- != 0) {
      return previous;
    }
  }
  return std::nullopt;
}

std::vector<IpRange> without(const std::vector<IpRange>& ranges, const IpRange& hole) {
  std::vector<IpRange> out;
  for (const IpRange& range : ranges) {
    if (range.last < hole.first || hole.last < range.first) {
      out.push_back(range);
      continue;
    }
    if (range.first < hole.first) {
      out.push_back({range.first, *previous_address(hole.first)});
    }
    if (hole.last < range.last) {
      out.push_back({*next_address(hole.last), range.last});
    }
  }
  return out;
}

IpRange all_addresses(Family family) {
  const Cidr all{IpAddress{family, {}}, 0};
  return {all.base, last_address(all)};
}

IpRange loopback_range(Family family) {
  Cidr loopback{IpAddress{family, {}}, 8};
  if (family == Family::IPv4) {
    loopback.base.bytes[0] = 127;
  } else {
    loopback.base.bytes[15] = 1;
    loopback.prefix_length = 128;
  }
  return {loopback.base, last_address(loopback)};
}

}  // namespace shunt::net
