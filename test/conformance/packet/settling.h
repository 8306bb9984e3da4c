// When an agent that says nothing about itself has done its work: the API server has sent it
// everything, and after that the kernel has heard nothing from it for a while.
//
// Heard is what nf_tables and connection tracking tell their listeners: changes of rules and
// elements, iptables over nf_tables included, and entries that went. IPVS and the old xtables tell
// nobody: for them it is a pause alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "netns/netns.h"
#include "packet/api_server.h"

namespace shunt::conformance::packet {

// Word of changes to the netfilter state of a namespace.
class NetfilterEar {
 public:
  explicit NetfilterEar(const lab::Netns& where);

  // Waits for this long at most. Whether there was a change.
  bool heard_within(std::chrono::milliseconds time) const;

 private:
  UniqueFd fd_;
};

class Settling {
 public:
  Settling(const lab::Netns& node, const ApiServer& server, std::chrono::milliseconds quiet)
      : ear_(node), server_(&server), quiet_(quiet) {}

  // Watches that are open now are an earlier agent's.
  void agent_starts();

  // Answers what is wrong, or nothing. `problem` is asked again and again.
  std::optional<std::string> wait(
      std::chrono::milliseconds timeout,
      const std::function<std::optional<std::string>()>& problem) const;

 private:
  bool has_everything() const;

  NetfilterEar ear_;
  const ApiServer* server_;
  std::chrono::milliseconds quiet_;
  std::uint64_t last_old_watch_ = 0;
};

}  // namespace shunt::conformance::packet
