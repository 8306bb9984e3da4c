#include "node/start_up.h"

#include "node/own_addresses.h"

namespace shunt::node {

StartUpWait::Verdict StartUpWait::look(const kube::Node* node, Clock::time_point now) {
  if (verdict_ == Verdict::Wait) {
    verdict_ = next_verdict(node, now);
  }
  if (verdict_ != Verdict::Wait) {
    until_.reset();
  }
  return verdict_;
}

StartUpWait::Verdict StartUpWait::next_verdict(const kube::Node* node, Clock::time_point now) {
  if (!waits_for_pod_cidrs_) {
    if (!until_) {
      until_ = now + patience_.addresses;
    }
    const bool known = node != nullptr && !addresses_of(*node).empty();
    if (!known && now < *until_) {
      return Verdict::Wait;
    }
    if (!needs_pod_cidrs_) {
      return Verdict::Start;
    }
    waits_for_pod_cidrs_ = true;
    until_ = now + patience_.pod_cidrs;
  }
  if (node != nullptr && !node->pod_cidrs.empty()) {
    return Verdict::Start;
  }
  if (now < *until_) {
    return Verdict::Wait;
  }
  return node == nullptr ? Verdict::NodeMissing : Verdict::PodRangesMissing;
}

bool pod_cidrs_changed(
    bool needs_pod_cidrs, const std::vector<std::string>& pod_cidrs, const kube::Node* now) {
  return needs_pod_cidrs && now != nullptr && now->pod_cidrs != pod_cidrs;
}

std::string zone_of(const kube::Node* node) {
  return node != nullptr ? node->zone.value_or("") : std::string();
}

}  // namespace shunt::node
