// What a flow of the bank asks for, and what the machine or the agent under test lacks of it.
//
// A flow that asks for more is skipped with the reason, never judged: an agent without node ports
// lets a packet for a node port pass, and must not be praised for it where "no match" happens to be
// right.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "packet/packet_case.h"

namespace shunt::conformance::packet {

using Capabilities = std::set<std::string, std::less<>>;

struct Abilities {
  // What the agent can do; all of it unless `conformance --capabilities a,b,...` says less, for one
  // that is being built. All words:
  //   cluster-ip        Services by their ClusterIP, and what is refused or dropped there
  //   node-port         by a port of the node
  //   external-ip       by one of spec.externalIPs
  //   load-balancer     by a balancer address
  //   source-ranges     loadBalancerSourceRanges
  //   session-affinity  ClientIP affinity
  //   stale-udp         tracked UDP flows of an endpoint that went are forgotten
  //   metrics           the gauges of services without local endpoints
  //   stray-segments    segments outside the window do not reach the client
  //   sctp, self-heal, raw-packets    the bank's own words
  std::optional<Capabilities> agent;
  // What this machine cannot do, and why.
  std::map<std::string, std::string, std::less<>> machine_lacks;

  // Why not all of this can be done, or nothing.
  std::optional<std::string> lacking(const Capabilities& needed) const;
};

// Every Service of a case, whichever step applies it: a node port of any of them is nobody else's.
class ServiceIndex {
 public:
  explicit ServiceIndex(const Case& packet_case);

  // The capabilities that judging this flow takes; the bank's own words included.
  Capabilities needed_by(const Flow& flow, const Step& step) const;

 private:
  void add(const nlohmann::json& service);
  Capabilities needed_by_destination(const Flow& flow) const;

  std::map<net::IpAddress, Capabilities> addresses_;
  std::map<std::pair<net::Protocol, net::Port>, Capabilities> node_ports_;
  std::vector<net::IpAddress> node_addresses_;
  Capabilities of_case_;
};

}  // namespace shunt::conformance::packet
