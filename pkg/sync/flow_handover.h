// What the cleaner of tracked flows was told of one family, so that it hears of a frontend when,
// and only when, its rules are in the kernel and other endpoints serve it than before; and is
// warned before they may be. Owned by the sync thread.
#pragma once

#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backend/backend.h"
#include "backend/flow_cleaner.h"
#include "desired/desired_state.h"

namespace shunt::sync {

class FlowHandover {
 public:
  // Before an apply() of `delta`.
  void about_to_apply(
      net::Family family,
      const desired::DesiredState& wanted,
      const backend::Delta& delta,
      backend::FlowCleaner& cleaner);
  // After an apply() of `delta`, whatever came of it: hands over what it brought into the kernel.
  // `set_aside`: frontends that the kernel refuses, now or since earlier.
  void applied(
      net::Family family,
      const desired::DesiredState& wanted,
      const backend::Delta& delta,
      const backend::ApplyReport& report,
      const std::set<desired::FrontendKey>& set_aside,
      backend::FlowCleaner& cleaner);
  // After an apply() that brought back what somebody had taken away: costs a look at every
  // frontend.
  static void repaired(
      net::Family family, const desired::DesiredState& wanted, backend::FlowCleaner& cleaner);

 private:
  std::vector<desired::FrontendKey> udp_frontends(
      const desired::DesiredState& wanted, const backend::Delta& delta) const;
  // Whether the cleaner knows another state of the frontend than the wanted one.
  bool is_news(const desired::FrontendKey& key, const desired::FrontendPlan* plan) const;

  std::unordered_map<desired::FrontendKey, desired::EndpointListPtr> told_;
  std::unordered_set<desired::FrontendKey> warned_;  // changing, and not told since
};

}  // namespace shunt::sync
