// What rtnetlink is told of the addresses of Services, and what it answers. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "net/ip_address.h"
#include "netlink/attributes.h"
#include "netlink/requests.h"

namespace shunt::netlink::address_wire {

constexpr int kLoopbackIndex = 1;  // in every network namespace

enum class Verb : std::uint8_t { Add, Remove };

// A device of type dummy, and what is known of a device by its name.
void encode_add_dummy(Requests& to, std::string_view name);
void encode_remove_device(Requests& to, int index);
void encode_get_device(Requests& to, std::string_view name);
int decode_device(AttributeBytes payload);  // its index

void encode_address(Requests& to, Verb verb, const net::IpAddress& address, int device);
void encode_list_addresses(Requests& to, net::Family family, int device);
// Nothing when it is of another family or device, or not an address alone (/32, /128), and for
// link-local ones of IPv6.
std::optional<net::IpAddress> decode_address(
    AttributeBytes payload, net::Family family, int device);

// A route of type local to one address.
struct LocalRoute {
  std::uint32_t table = 0;
  int device = 0;
};
void encode_route(Requests& to, Verb verb, const net::IpAddress& address, const LocalRoute& route);
void encode_list_routes(Requests& to, net::Family family, const LocalRoute& route);
std::optional<net::IpAddress> decode_route(
    AttributeBytes payload, net::Family family, const LocalRoute& route);

// Packets that have all bits of `mark` look into `table`.
struct MarkRule {
  std::uint32_t priority = 0;
  std::uint32_t mark = 0;
  std::uint32_t mask = 0;
  std::uint32_t table = 0;
  auto operator<=>(const MarkRule&) const = default;
};
void encode_rule(Requests& to, Verb verb, net::Family family, const MarkRule& rule);
void encode_list_rules(Requests& to, net::Family family);
std::optional<MarkRule> decode_rule(AttributeBytes payload, net::Family family);

}  // namespace shunt::netlink::address_wire
