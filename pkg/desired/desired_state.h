// Every frontend that one address family wants, and who owns it.
//
// Two Services may claim the same frontend (the API forbids it for ClusterIPs, files and hostile
// writers do not): the older one wins (creationTimestamp, then UID, then name), whatever the order
// of arrival, and the loser takes over when the winner goes. Output depends on what is, never on
// how we got there.
//
// Owned by the sync thread. Cost of every call follows the Service.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "desired/frontend.h"
#include "kube/object_key.h"
#include "net/cidr.h"

namespace shunt::desired {

// Orders the claims to a frontend; the smallest wins.
struct Seniority {
  std::int64_t creation_seconds = 0;
  std::string uid;
  std::string name;  // "ns/name:port/TCP"
  auto operator<=>(const Seniority&) const = default;
};

struct Claim {
  FrontendKey key;
  Seniority seniority;
  std::shared_ptr<const FrontendPlan> plan;
};

// A frontend that its claimant did not get.
struct Conflict {
  FrontendKey key;
  std::string winner;
  std::string loser;
};

class DesiredState {
 public:
  // Replaces what a Service claims. Appends to `touched` the frontends whose plan is now another
  // one, and to `conflicts` the claims of this Service that lost, or those it made lose.
  void set_service(
      const kube::ObjectKey& service,
      std::vector<Claim> claims,
      std::vector<FrontendKey>& touched,
      std::vector<Conflict>& conflicts);

  // The plan in force, or null.
  const FrontendPlan* find(const FrontendKey& key) const;
  std::vector<FrontendKey> keys() const;  // a full pass
  std::size_t size() const { return frontends_.size(); }
  std::size_t conflicts() const { return conflicts_; }  // claims without a frontend, now

  // Ranges that ClusterIPs come from, of this family, in any order. Nothing: not known yet, so that
  // a restart leaves what the kernel has.
  std::optional<std::vector<net::Cidr>> service_cidrs;
  std::vector<net::Cidr> pod_cidrs;  // those that tell traffic of pods
  // Where NodePorts answer: the addresses of the node that lie in these. Loopback never does.
  // Nothing: not known yet, as above.
  std::optional<std::vector<net::Cidr>> node_port_cidrs;

 private:
  struct Holder {
    kube::ObjectKey service;
    Seniority seniority;
    std::shared_ptr<const FrontendPlan> plan;
  };

  void add(const kube::ObjectKey& service, Claim claim, std::vector<Conflict>& conflicts);
  void remove(const kube::ObjectKey& service, const FrontendKey& key);

  std::unordered_map<FrontendKey, std::vector<Holder>> frontends_;  // the first holder has it
  std::unordered_map<kube::ObjectKey, std::vector<FrontendKey>> services_;
  std::size_t conflicts_ = 0;
};

}  // namespace shunt::desired
