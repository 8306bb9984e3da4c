// Where the API server listens: the `server` of a kubeconfig, taken apart once. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/socket_address.h"

namespace shunt::apiserver {

struct ServerUrl {
  std::string host;                  // without brackets
  std::optional<net::IpAddress> ip;  // when the host is an address
  net::Port port{};
  std::string base_path;  // "" or "/prefix", no slash at the end
  bool tls = true;

  std::string host_header() const;  // "host:port", IPv6 in brackets; also what to print
};

// https only. http is for loopback addresses, where test servers are: anywhere else the cluster's
// state could be forged on the way, so it is refused.
Result<ServerUrl> parse_server_url(std::string_view text);
std::string to_string(const ServerUrl& url);

}  // namespace shunt::apiserver
