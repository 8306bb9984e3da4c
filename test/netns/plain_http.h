// One plain HTTP request to a server in a namespace, such as the admin port of the test API server.
// Blocking: the server is next door.
#pragma once

#include <string>

#include "net/socket_address.h"
#include "netns/netns.h"

namespace shunt::lab {

struct HttpAnswer {
  int status = 0;  // 0: nobody answers
  std::string body;
};

HttpAnswer plain_http(
    const Netns& where,
    const net::SocketAddress& server,
    const std::string& method,
    const std::string& path,
    const std::string& body = {});

}  // namespace shunt::lab
