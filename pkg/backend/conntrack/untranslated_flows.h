// Which tracked flows of any protocol were sent to a frontend in a moment without its rules, and so
// went nowhere: they are not redirected, nobody answered, and while their entry lives, the kernel
// lets a client that uses the same source port go the same way. Pure.
#pragma once

#include <vector>

#include "backend/conntrack/flow.h"
#include "desired/frontend.h"

namespace shunt::backend::conntrack {

// `frontends`: sorted. `local`: the addresses of this node where a NodePort may answer.
bool is_untranslated(
    const Flow& flow,
    const std::vector<desired::FrontendKey>& frontends,
    const LocalAddresses& local);

}  // namespace shunt::backend::conntrack
