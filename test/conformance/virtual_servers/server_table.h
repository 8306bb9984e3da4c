// The kernel's table of virtual servers as the cases write it, and as ipvsadm reads and writes it:
// no code of the agent's has a hand in it.
//
// A table is an object, "address:port/PROTOCOL" to a server: `scheduler`, `reals` (address:port to
// weight), `affinitySeconds` and `hashesSourcePort` where they are set.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "net/socket_address.h"

namespace shunt::conformance::virtual_servers {

struct ServerName {
  net::SocketAddress address;
  net::Protocol protocol = net::Protocol::Tcp;
  auto operator<=>(const ServerName&) const = default;
};

// "10.112.30.1:80/TCP". Throws std::invalid_argument when it is none.
ServerName parse_server_name(const std::string& text);
std::string to_string(const ServerName& name);

// Names in their one spelling, what is left out in a case said.
nlohmann::json canonical_table(const nlohmann::json& table);

// What `ipvsadm -Sn` printed. Throws std::invalid_argument at what it does not know: a line that
// is overlooked could be the one that matters.
nlohmann::json parse_saved(const std::string& text);

// For `ipvsadm -R`.
std::string to_saved(const nlohmann::json& table);

// What is open by a real server of a virtual one.
struct Counts {
  std::uint32_t active = 0;
  std::uint32_t inactive = 0;
  auto operator<=>(const Counts&) const = default;
};
using CountsByReal = std::map<std::pair<ServerName, net::SocketAddress>, Counts>;

// What `ipvsadm -Ln` printed.
CountsByReal parse_counts(const std::string& text);

}  // namespace shunt::conformance::virtual_servers
