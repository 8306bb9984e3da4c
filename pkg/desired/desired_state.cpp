#include "desired/desired_state.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace shunt::desired {
namespace {

template <typename T>
bool same_list(
    const std::shared_ptr<const std::vector<T>>& a,
    const std::shared_ptr<const std::vector<T>>& b) {
  return a == b || (a && b && *a == *b);
}

}  // namespace

FrontendKey node_port_key(net::Family family, net::Protocol protocol, net::Port port) {
  return {net::IpAddress{family, {}}, protocol, port};
}

bool is_node_port(const FrontendKey& key) { return key.ip == net::IpAddress{key.ip.family, {}}; }

std::string to_string(const FrontendKey& key) {
  const std::string protocol = "/" + std::string(net::to_string(key.protocol));
  return is_node_port(key) ? "*:" + std::to_string(net::number(key.port)) + protocol
                           : net::to_string(net::SocketAddress{key.ip, key.port}) + protocol;
}

bool operator==(const FrontendPlan& a, const FrontendPlan& b) {
  return a.fate == b.fate && a.reach == b.reach && a.service == b.service &&
         a.balancer == b.balancer && a.internal_local == b.internal_local &&
         a.health_check_port == b.health_check_port && a.affinity == b.affinity &&
         same_list(a.endpoints, b.endpoints) && same_list(a.local_endpoints, b.local_endpoints) &&
         same_list(a.sources, b.sources) && same_list(a.serving, b.serving) &&
         (a.ipvs == b.ipvs || (a.ipvs && b.ipvs && *a.ipvs == *b.ipvs));
}

void DesiredState::set_service(
    const kube::ObjectKey& service,
    Seniority seniority,
    std::vector<Claim> claims,
    std::vector<FrontendKey>& touched,
    std::vector<Conflict>& conflicts) {
  // Two ports of one Service with the same number and protocol are one frontend as well.
  // The first of them stands.
  std::stable_sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) {
    return std::tie(a.key, a.plan->service) < std::tie(b.key, b.plan->service);
  });
  claims.erase(
      std::unique(
          claims.begin(),
          claims.end(),
          [](const Claim& a, const Claim& b) { return a.key == b.key; }),
      claims.end());

  std::map<FrontendKey, std::shared_ptr<const FrontendPlan>> before;
  const auto note = [&](const FrontendKey& key) {
    const auto it = frontends_.find(key);
    before.try_emplace(key, it == frontends_.end() ? nullptr : it->second.front().plan);
  };
  for (const Claim& claim : claims) {
    note(claim.key);
  }
  if (const auto old = services_.find(service); old != services_.end()) {
    for (const FrontendKey& key : old->second.frontends) {
      note(key);
      remove(*old, key);
    }
    services_.erase(old);
  }
  if (!claims.empty()) {
    Service& mine = *services_.try_emplace(service).first;
    mine.second.seniority = std::move(seniority);
    mine.second.frontends.reserve(claims.size());
    for (Claim& claim : claims) {
      mine.second.frontends.push_back(claim.key);
      add({&mine, std::move(claim.plan)}, claim.key, conflicts);
    }
  }
  for (const auto& [key, old_plan] : before) {
    const FrontendPlan* now = find(key);
    const bool same =
        now == nullptr ? old_plan == nullptr : old_plan != nullptr && *now == *old_plan;
    if (!same) {
      touched.push_back(key);
    }
  }
}

bool DesiredState::is_senior(const Holder& a, const Holder& b) {
  return std::tie(a.service->second.seniority, a.plan->service) <
         std::tie(b.service->second.seniority, b.plan->service);
}

void DesiredState::add(Holder holder, const FrontendKey& key, std::vector<Conflict>& conflicts) {
  auto& holders = frontends_[key];
  const auto at = std::upper_bound(holders.begin(), holders.end(), holder, is_senior);
  if (!holders.empty()) {
    ++conflicts_;
    const bool wins = at == holders.begin();
    const std::string& mine = holder.plan->service;
    const std::string& other = holders.front().plan->service;
    conflicts.push_back({key, wins ? mine : other, wins ? other : mine});
  }
  holders.insert(at, std::move(holder));
}

void DesiredState::remove(const Service& service, const FrontendKey& key) {
  const auto it = frontends_.find(key);
  auto& holders = it->second;
  holders.erase(std::find_if(holders.begin(), holders.end(), [&](const Holder& holder) {
    return holder.service == &service;
  }));
  if (holders.empty()) {
    frontends_.erase(it);
  } else {
    --conflicts_;
  }
}

const FrontendPlan* DesiredState::find(const FrontendKey& key) const {
  const auto it = frontends_.find(key);
  return it == frontends_.end() ? nullptr : it->second.front().plan.get();
}

std::vector<FrontendKey> DesiredState::keys() const {
  std::vector<FrontendKey> out;
  out.reserve(frontends_.size());
  for (const auto& [key, holders] : frontends_) {
    out.push_back(key);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace shunt::desired
