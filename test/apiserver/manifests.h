// Manifests as people write them: YAML or JSON, several documents, kind: List.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "test/apiserver/json.h"

namespace shunt::test_api {

// The objects of a text; a `kind: List` (or ServiceList and so on) counts as its items, which
// inherit kind and apiVersion from it when they have none.
Result<std::vector<Json>> parse_manifests(const std::string& text);

// A file, or every *.yaml, *.yml and *.json of a directory in the order of names.
Result<std::vector<Json>> read_manifests(const std::string& path);

}  // namespace shunt::test_api
