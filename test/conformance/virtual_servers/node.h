// The network namespace that is the node of a case: its interfaces, and what its kernel holds of
// IPVS, written and read by ipvsadm and ip.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "net/ip_address.h"
#include "netns/netns.h"
#include "virtual_servers/virtual_servers_case.h"

namespace shunt::conformance::virtual_servers {

class Node {
 public:
  explicit Node(const Case& test_case);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  const lab::Netns& netns() const { return node_; }
  const lab::Netns& neighbour() const { return neighbour_; }  // an empty namespace beside it

  // What an earlier agent left. Throws when the kernel does not hold it afterwards.
  void leave(const nlohmann::json& servers, const std::vector<net::IpAddress>& bound) const;
  void disturb(const Weight& weight) const;

  nlohmann::json servers() const;  // of both families
  // On the agent's own device, without link-local ones; none without such a device.
  std::vector<net::IpAddress> bound(net::Family family) const;

 private:
  void make_interfaces(const Case& test_case) const;
  std::string run(const std::vector<std::string>& command, const std::string& input = {}) const;

  lab::Netns node_;
  lab::Netns neighbour_;
};

}  // namespace shunt::conformance::virtual_servers
