// Says what an operator should know of a run: log lines, and notices for those who make Events of
// them. What is said once is not said again while it stays as it is.
//
// Owned by the sync thread.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "desired/desired_state.h"
#include "kube/object_key.h"
#include "net/ip_address.h"
#include "sync/observer.h"

namespace shunt::sync {

class Reporter {
 public:
  // `observer` outlives this.
  explicit Reporter(Observer& observer) : observer_(&observer) {}

  // Values of the Service or its slices that were set aside; none: all is well again.
  void issues(
      const kube::ObjectKey& service,
      const std::string& uid,
      net::Family family,
      std::vector<std::string> issues);
  void conflict(const kube::ObjectKey& planned, const std::string& uid, const desired::Conflict& c);
  // `plan` may be null.
  void refused(
      net::Family family, const backend::Refusal& refusal, const desired::FrontendPlan* plan);
  void accepted(net::Family family, const desired::FrontendKey& frontend);
  void drifted(net::Family family, const backend::Drift& drift);

 private:
  Observer* observer_;
  std::map<std::pair<kube::ObjectKey, net::Family>, std::vector<std::string>> issues_;
};

}  // namespace shunt::sync
