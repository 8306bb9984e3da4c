// Virtual servers, destinations and timeouts as the attributes of generic netlink (spec/ipvs.md
// §10; include/uapi/linux/ip_vs.h). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "netlink/attributes.h"
#include "netlink/ipvs.h"
#include "netlink/requests.h"

namespace shunt::netlink::ipvs {

enum class Verb : std::uint8_t {
  NewServer = 1,
  SetServer = 2,
  DeleteServer = 3,
  GetServer = 4,
  NewDestination = 5,
  SetDestination = 6,
  DeleteDestination = 7,
  GetDestination = 8,
  SetConfig = 12,
  GetConfig = 13,
};

void encode(Requests& to, Verb verb, const Server& server);
void encode(Requests& to, Verb verb, const ServerKey& server);
void encode(Requests& to, Verb verb, const ServerKey& server, const Destination& destination);
void encode(
    Requests& to, Verb verb, const ServerKey& server, const net::SocketAddress& destination);
void encode(Requests& to, const Timeouts& timeouts);
// Questions.
void encode_list_servers(Requests& to);
void encode_list_destinations(Requests& to, const ServerKey& server);
void encode_get_config(Requests& to);

// Of the payload of an answer, the generic header first. Nothing for what we have no word for: a
// server that is found by a mark, another protocol or family, what is cut short.
std::optional<Server> decode_server(AttributeBytes payload);
// `family` is the server's: kernels before 3.18 do not name the destination's.
std::optional<Destination> decode_destination(AttributeBytes payload, net::Family family);
std::optional<Timeouts> decode_timeouts(AttributeBytes payload);

// "add server TCP 10.96.0.1:443", of a whole encoded request: for what the kernel refused.
std::string describe(AttributeBytes request);
std::optional<Verb> verb_of(AttributeBytes request);

}  // namespace shunt::netlink::ipvs
