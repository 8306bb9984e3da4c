// YAML as Kubernetes reads it -> JSON text, a document at a time. Pure.
//
// Kubernetes turns YAML into JSON before it looks at it, by the rules of YAML 1.1 as Go's yaml.v2
// has them: what is quoted is a string; what is not may be null, a boolean (`yes` and `off`, too),
// a number (0x1f and 0777 as well), and is a string otherwise. Here the same, but for merge keys
// (<<), which are refused.
//
// The one user of yaml-cpp in this folder. What the text can make of us is bounded: its depth, and
// what its aliases unfold to.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace shunt::manifests {

inline constexpr std::size_t kMaxYamlDepth = 100;

// `on_document` gets the JSON of each document that is not empty, and the line it begins in; the
// view is valid during the call only. Errors (Errc::Invalid) begin with "line 7: "; the documents
// before have been told by then.
Result<> yaml_to_json(
    std::string_view text,
    std::size_t max_json,
    const std::function<void(std::string_view json, std::size_t line)>& on_document);

// A scalar without quotes, as JSON: `true`, `80`, `"80a"`.
std::string plain_scalar_to_json(std::string_view text);

}  // namespace shunt::manifests
