// Sockets of the client outside the node that every measurement with packets uses.
#pragma once

#include "base/unique_fd.h"
#include "net/socket_address.h"

namespace shunt::bench {

// In the clients' namespace: bound to the client's address, to a port that is chosen at connect;
// TCP is closed without TIME_WAIT, so that a run does not use up the ports.
UniqueFd open_client(net::Protocol protocol, bool blocking);

}  // namespace shunt::bench
