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
#include <utility>
#include <vector>

#include "desired/frontend.h"
#include "kube/object_key.h"
#include "net/cidr.h"

namespace shunt::desired {

// Orders the Services that claim a frontend; the smallest wins. Equals are ordered by the name in
// the plan.
struct Seniority {
  std::int64_t creation_seconds = 0;
  std::string uid;
  auto operator<=>(const Seniority&) const = default;
};

struct Claim {
  FrontendKey key;
  std::shared_ptr<const FrontendPlan> plan;
};

// A frontend that its claimant did not get.
struct Conflict {
  FrontendKey key;
  std::string winner;  // "ns/name:port"
  std::string loser;
};

class DesiredState {
 public:
  // Replaces what a Service claims. Appends to `touched` the frontends whose plan is now another
  // one, and to `conflicts` the claims of this Service that lost, or those it made lose.
  void set_service(
      const kube::ObjectKey& service,
      Seniority seniority,
      std::vector<Claim> claims,
      std::vector<FrontendKey>& touched,
      std::vector<Conflict>& conflicts);

  // The plan in force, or null.
  const FrontendPlan* find(const FrontendKey& key) const;
  std::vector<FrontendKey> keys() const;  // a full pass
  std::size_t size() const { return frontends_.size(); }
  std::optional<FrontendKey> any() const {  // one of them
    return frontends_.empty() ? std::nullopt : std::optional(frontends_.begin()->first);
  }
  std::size_t conflicts() const { return conflicts_; }  // claims without a frontend, now

  // Ranges that ClusterIPs come from, of this family, in any order. Nothing: not known yet, so that
  // a restart leaves what the kernel has.
  std::optional<std::vector<net::Cidr>> service_cidrs;
  std::vector<net::Cidr> pod_cidrs;  // those that tell traffic of pods
  // Where NodePorts answer: the addresses of the node that lie in these. Loopback never does.
  // Nothing: not known yet, as above.
  std::optional<std::vector<net::Cidr>> node_port_cidrs;

 private:
  struct Claims {
    Seniority seniority;
    std::vector<FrontendKey> frontends;
  };
  using Service = std::pair<const kube::ObjectKey, Claims>;
  struct Holder {
    const Service* service = nullptr;  // in services_
    std::shared_ptr<const FrontendPlan> plan;
  };

  static bool is_senior(const Holder& a, const Holder& b);
  void add(Holder holder, const FrontendKey& key, std::vector<Conflict>& conflicts);
  void remove(const Service& service, const FrontendKey& key);

  std::unordered_map<FrontendKey, std::vector<Holder>> frontends_;  // the first holder has it
  std::unordered_map<kube::ObjectKey, Claims> services_;
  std::size_t conflicts_ = 0;
};

}  // namespace shunt::desired
