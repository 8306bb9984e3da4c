#include "backend/ipvs/service_addresses.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace shunt::backend::ipvs {

using What = ServiceAddresses::Change::What;

Result<ServiceAddresses::Found> ServiceAddresses::look(Kernel& kernel) {
  auto bound = kernel.bound();
  if (!bound) {
    return tl::unexpected(bound.error());
  }
  auto local = kernel.local_routes();
  if (!local) {
    return tl::unexpected(local.error());
  }
  auto routed = kernel.routes();
  if (!routed) {
    return tl::unexpected(routed.error());
  }
  return Found{std::move(*bound), std::move(*local), std::move(*routed)};
}

void ServiceAddresses::adopt(const Found& found) {
  bound_ = {found.bound.begin(), found.bound.end()};
  local_ = {found.local.begin(), found.local.end()};
  routed_ = {found.routed.begin(), found.routed.end()};
}

bool ServiceAddresses::is(const Found& found) const {
  return std::ranges::equal(bound_, found.bound) && std::ranges::equal(local_, found.local) &&
         std::ranges::equal(routed_, found.routed);
}

void ServiceAddresses::set_host_addresses(std::set<net::IpAddress> addresses) {
  std::ranges::set_symmetric_difference(host_, addresses, std::inserter(touched_, touched_.end()));
  host_ = std::move(addresses);
}

void ServiceAddresses::count(const net::IpAddress& ip, desired::Reach reach, bool more) {
  Users& users = users_[ip];
  std::uint32_t& number = reach == desired::Reach::Internal ? users.internal : users.external;
  number += more ? 1U : ~0U;
  if (users.internal == 0 && users.external == 0) {
    users_.erase(ip);
  }
  touched_.insert(ip);
}

void ServiceAddresses::want(
    const desired::FrontendKey& frontend, std::optional<desired::Reach> reach) {
  if (desired::is_node_port(frontend)) {
    return;
  }
  const auto known = frontends_.find(frontend);
  const auto before = known == frontends_.end() ? std::nullopt : std::optional(known->second);
  if (before == reach) {
    return;
  }
  if (before) {
    count(frontend.ip, *before, false);
    frontends_.erase(known);
  }
  if (reach) {
    count(frontend.ip, *reach, true);
    frontends_.emplace(frontend, *reach);
  }
}

bool ServiceAddresses::is_wanted(const net::IpAddress& ip) const {
  const auto found = users_.find(ip);
  return found != users_.end() &&
         (found->second.internal > 0 || (found->second.external > 0 && !host_.contains(ip)));
}

ServiceAddresses::Changes ServiceAddresses::stage(bool everything) {
  Changes out;
  std::set<net::IpAddress> look = std::exchange(touched_, {});
  if (everything) {
    look.insert(bound_.begin(), bound_.end());
    look.insert(routed_.begin(), routed_.end());
    for (const auto& [ip, users] : users_) {
      look.insert(ip);
    }
  }
  for (const net::IpAddress& ip : look) {
    if (!is_wanted(ip)) {
      if (bound_.contains(ip)) {
        out.after.push_back({What::Unbind, ip});
      }
      if (routed_.contains(ip)) {
        out.after.push_back({What::Unroute, ip});
      }
      continue;
    }
    if (!bound_.contains(ip)) {
      // Not for a moment longer local than the kernel insists on.
      out.before.push_back({What::Bind, ip});
      out.before.push_back({What::MakeNotLocal, ip});
    } else if (local_.contains(ip)) {
      out.after.push_back({What::MakeNotLocal, ip});  // an earlier run's, which relied on it
    }
    if (!routed_.contains(ip)) {
      out.before.push_back({What::Route, ip});
    }
  }
  return out;
}

void ServiceAddresses::follow(const Change& change) {
  const net::IpAddress& ip = change.address;
  switch (change.what) {
    case What::Bind:
      bound_.insert(ip);
      local_.insert(ip);
      return;
    case What::Unbind:
      bound_.erase(ip);
      local_.erase(ip);
      return;
    case What::Route:
      routed_.insert(ip);
      return;
    case What::Unroute:
      routed_.erase(ip);
      return;
    case What::MakeLocal:
      local_.insert(ip);
      return;
    case What::MakeNotLocal:
      local_.erase(ip);
      return;
  }
}

}  // namespace shunt::backend::ipvs
