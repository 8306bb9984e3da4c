// NodePorts on localhost, as an option (kubeShunt.localhostNodePorts): a relay in user space.
//
// Rules cannot do it. A packet to 127.0.0.1 that is sent on to a pod has a source in 127/8, which
// the kernel refuses to route out of another device unless route_localnet is on; and route_localnet
// opens what listens on loopback of this node to its neighbours (kube-proxy's iptables mode turns
// it on, its nftables mode therefore has no NodePorts on localhost). For ::1 there is no such
// switch at all.
//
// So the daemon listens on 127.0.0.1 and [::1], on every NodePort that has endpoints, for TCP and
// UDP, and passes on what comes to an endpoint of the NodePort's plan, from the node's own address.
// The endpoints are those that the node itself may use, also with externalTrafficPolicy Local. What
// differs from a rule: a connection ends with the daemon, and a client of an endpoint that does not
// answer is reset instead of refused.
//
// One thread of its own owns the sockets; update() only hands over.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>

#include "desired/desired_state.h"
#include "relay/engine.h"

namespace shunt::relay {

class Relay {
 public:
  static Result<std::unique_ptr<Relay>> start(const Limits& limits, Random random);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay();

  // Whoever calls update() is another one from now on. Its first call for a family comes when it
  // knows all NodePorts: those that it does not want are gone.
  void begin();
  // Any thread; cheap. Looks at those of `touched` that are NodePorts of TCP or UDP.
  void update(
      net::Family family,
      const desired::DesiredState& wanted,
      std::span<const desired::FrontendKey> touched);

 private:
  Relay() = default;
  void run();
  bool take_changes();

  WakeFd wake_;
  std::unique_ptr<Engine> engine_;
  std::mutex mutex_;
  std::map<desired::FrontendKey, std::optional<NodePort>> changes_;
  std::set<desired::FrontendKey> told_;  // NodePorts that were last said to be wanted
  std::set<net::Family> to_begin_;       // families that the new one has not spoken of yet
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace shunt::relay
