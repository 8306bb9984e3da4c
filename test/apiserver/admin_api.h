// The /_test verbs of the admin port: bulk changes, faults, statistics, ageing.
#pragma once

#include "test/apiserver/api.h"
#include "test/apiserver/journal.h"

namespace shunt::test_api {

// True when the path was one of ours.
bool handle_admin(Context context, Journal& journal, const Request& request, Response& response);

// Creates or replaces every object; answers how many. Stops at the first that is refused.
Result<std::size_t> apply_objects(Store& store, std::vector<Json> objects, bool raw);

}  // namespace shunt::test_api
