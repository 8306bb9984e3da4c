// Who removes tracked flows that lead nowhere: UDP flows to endpoints which no longer serve, and
// flows of any protocol that met a moment without our rules. Told what is in the kernel, never what
// is only wanted: a flow that is removed before the rules are right comes back as it was.
#pragma once

#include <memory>
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
  // All are cheap, the work is done elsewhere, later; all come from the sync thread.
  //
  // The rules of these frontends are about to change: nobody can tell whether a flow of theirs is
  // stale, so none is removed until changed() has word of the frontend.
  virtual void changing(net::Family family, const std::vector<desired::FrontendKey>& frontends) = 0;
  virtual void changed(net::Family family, std::vector<ServingChange> changes) = 0;
  // Somebody had taken rules of ours away, and they are back: flows to these frontends (sorted; all
  // have endpoints) which were not redirected meanwhile, and were not answered, are in the way of
  // their clients' next try. The last call counts.
  virtual void untranslated(
      net::Family family, std::shared_ptr<const std::vector<desired::FrontendKey>> frontends) = 0;
  // Whether everything handed over has been dealt with. Any thread.
  virtual bool idle() const = 0;
};

}  // namespace shunt::backend
