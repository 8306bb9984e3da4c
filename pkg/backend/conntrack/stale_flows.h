// Which tracked flows lead nowhere (spec/conntrack-and-metrics.md §1, and where we know better).
// Pure: knows the UDP frontends of one family and judges one flow at a time.
#pragma once

#include <cstddef>
#include <unordered_map>

#include "backend/conntrack/flow.h"
#include "desired/frontend.h"

namespace shunt::backend::conntrack {

class StaleFlows {
 public:
  // `serving` may be null: nobody serves. Frontends of other protocols than UDP are ignored: their
  // flows end by themselves.
  void set(const desired::FrontendKey& key, desired::EndpointListPtr serving);
  // Flows of a frontend that is gone are nobody's, and stay.
  void erase(const desired::FrontendKey& key);
  bool empty() const { return frontends_.empty(); }

  // `local`: the addresses of this node where a NodePort may answer.
  bool is_stale(const Flow& flow, const LocalAddresses& local) const;

 private:
  const desired::EndpointListPtr* frontend_of(const Flow& flow, const LocalAddresses& local) const;

  // A NodePort is the port on the unspecified address.
  std::unordered_map<net::SocketAddress, desired::EndpointListPtr> frontends_;
};

}  // namespace shunt::backend::conntrack
