// Word that somebody changed the rules of routing of one family: rtnetlink's multicast group. What
// they are now is to be looked up. Also hears of this process's own changes.
//
// One thread, in one network namespace: that of the thread that opens it.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/ip_address.h"
#include "netlink/drain.h"

namespace shunt::netlink {

class RuleWatch {
 public:
  static Result<RuleWatch> open(net::Family family);

  int fd() const { return socket_.get(); }  // readable: call take_changes()
  // Whether anything was said since the last call, or lost; never waits.
  bool take_changes() { return drain(fd()); }

 private:
  explicit RuleWatch(UniqueFd socket) : socket_(std::move(socket)) {}
  UniqueFd socket_;
};

}  // namespace shunt::netlink
