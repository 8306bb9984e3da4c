// Walks one JSON document and puts its values where the slots say. The one user of nlohmann's SAX
// interface; no DOM is built.
//
// Rules: keys that no shape names are skipped with all they hold; null is as good as absent (in an
// array it keeps its place with an empty value); of equal keys the last wins, and equal keys that
// hold objects are merged, as Go and protobuf do.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/json_shape.h"

namespace shunt::kube::json {

inline constexpr std::size_t kMaxDepth = 200;

// What was wrong outside of any Record. Fails (Errc::Invalid) when the text is not one JSON value,
// is nested deeper than kMaxDepth, or holds a number that no double can (1e999), even where nobody
// reads it: nlohmann's parser gives up there. Records that were complete by then have been closed.
Result<Findings> read(std::string_view document, const Slot& root);

}  // namespace shunt::kube::json
