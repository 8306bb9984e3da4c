// Who removes tracked UDP flows that lead to endpoints which no longer serve. Told what is in the
// kernel, never what is only wanted: a flow that is removed before the rules are right comes back
// as it was.
#pragma once

#include <optional>
#include <vector>

#include "desired/frontend.h"

namespace shunt::backend {

// A UDP frontend as the rules in the kernel have it.
struct ServingChange {
  desired::FrontendKey frontend;
  // Nothing: the frontend is gone. Null: nobody serves.
  std::optional<desired::EndpointListPtr> serving;
};

class FlowCleaner {
 public:
  virtual ~FlowCleaner() = default;
  // Both are cheap, the work is done elsewhere, later; both come from the sync thread.
  //
  // The rules of these frontends are about to change: nobody can tell whether a flow of theirs is
  // stale, so none is removed until changed() has word of the frontend.
  virtual void changing(net::Family family, const std::vector<desired::FrontendKey>& frontends) = 0;
  virtual void changed(net::Family family, std::vector<ServingChange> changes) = 0;
  // Whether everything handed over has been dealt with. Any thread.
  virtual bool idle() const = 0;
};

}  // namespace shunt::backend
