#include "sync/flow_handover.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace shunt::sync {
namespace {

bool same(const desired::EndpointListPtr& a, const desired::EndpointListPtr& b) {
  return a == b || (a && b && *a == *b);
}

}  // namespace

std::vector<desired::FrontendKey> FlowHandover::udp_frontends(
    const desired::DesiredState& wanted, const backend::Delta& delta) const {
  std::vector<desired::FrontendKey> keys = delta.frontends;
  if (delta.everything) {
    keys = wanted.keys();
    for (const auto& [key, serving] : told_) {
      keys.push_back(key);
    }
    keys.insert(keys.end(), warned_.begin(), warned_.end());
  }
  std::erase_if(keys, [](const auto& key) { return key.protocol != net::Protocol::Udp; });
  return keys;
}

bool FlowHandover::is_news(
    const desired::FrontendKey& key, const desired::FrontendPlan* plan) const {
  const auto told = told_.find(key);
  if (plan == nullptr || told == told_.end()) {
    return (plan == nullptr) != (told == told_.end());
  }
  return !same(told->second, plan->serving);
}

void FlowHandover::about_to_apply(
    net::Family family,
    const desired::DesiredState& wanted,
    const backend::Delta& delta,
    backend::FlowCleaner& cleaner) {
  std::vector<desired::FrontendKey> warnings;
  for (const desired::FrontendKey& key : udp_frontends(wanted, delta)) {
    if (is_news(key, wanted.find(key)) && warned_.insert(key).second) {
      warnings.push_back(key);
    }
  }
  if (!warnings.empty()) {
    cleaner.changing(family, warnings);
  }
}

void FlowHandover::applied(
    net::Family family,
    const desired::DesiredState& wanted,
    const backend::Delta& delta,
    const backend::ApplyReport& report,
    const std::set<desired::FrontendKey>& set_aside,
    backend::FlowCleaner& cleaner) {
  if (report.retry_everything) {
    return;  // nobody knows what the kernel has; all of it is handed over once that is known
  }
  std::vector<desired::FrontendKey> keys = udp_frontends(wanted, delta);
  keys.insert(keys.end(), report.accepted.begin(), report.accepted.end());
  const std::set<desired::FrontendKey> open(report.retry.begin(), report.retry.end());
  std::vector<backend::ServingChange> news;
  for (const desired::FrontendKey& key : keys) {
    if (key.protocol != net::Protocol::Udp || open.contains(key) || set_aside.contains(key)) {
      continue;
    }
    const desired::FrontendPlan* plan = wanted.find(key);
    // A warning is followed by word even when all is as before: an apply that failed may have
    // changed the kernel for a while.
    if (warned_.erase(key) == 0 && !is_news(key, plan)) {
      continue;
    }
    if (plan == nullptr) {
      told_.erase(key);
      news.push_back({key, std::nullopt});
    } else {
      told_.insert_or_assign(key, plan->serving);
      news.push_back({key, plan->serving});
    }
  }
  // After a full repair there may be flows from a time without our rules, whatever changed.
  if (delta.everything || !news.empty()) {
    cleaner.changed(family, std::move(news));
  }
}

// A frontend without endpoints redirects nobody.
void FlowHandover::repaired(
    net::Family family, const desired::DesiredState& wanted, backend::FlowCleaner& cleaner) {
  std::vector<desired::FrontendKey> keys = wanted.keys();
  std::erase_if(keys, [&](const desired::FrontendKey& key) {
    const desired::FrontendPlan* plan = wanted.find(key);
    return plan == nullptr || (!plan->endpoints && !plan->local_endpoints);
  });
  if (!keys.empty()) {
    std::sort(keys.begin(), keys.end());
    cleaner.untranslated(
        family, std::make_shared<const std::vector<desired::FrontendKey>>(std::move(keys)));
  }
}

}  // namespace shunt::sync
