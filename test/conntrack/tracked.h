// The connection tracking table as a test sees it: entries put in as they are, and everything read
// out, in the network namespace of the calling thread. What fails here throws.
#pragma once

#include <memory>
#include <set>
#include <span>

#include "backend/conntrack/flow.h"
#include "netlink/socket.h"

namespace shunt::test {

class TrackedFlows {
 public:
  TrackedFlows();

  // With an hour to live; `answered` ones look like flows that went both ways for long. The kernel
  // gives the ids.
  void insert(std::span<const backend::conntrack::Flow> flows);
  // Flows of every protocol, without their ids.
  std::multiset<backend::conntrack::Flow> all(net::Family family);

 private:
  std::unique_ptr<netlink::Socket> socket_;
};

}  // namespace shunt::test
