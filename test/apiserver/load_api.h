// The verbs of the admin port that make load: /_test/generate and /_test/flip.
#pragma once

#include "test/apiserver/api.h"
#include "test/apiserver/generator.h"

namespace shunt::test_api {

// True when the path was one of ours.
bool handle_load(Context context, Generator& generator, const Request& request, Response& response);

}  // namespace shunt::test_api
