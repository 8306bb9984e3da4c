// What a failed request means for a list or watch (spec/api-objects.md §8.3, last paragraph). Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/decoded.h"

namespace shunt::apiserver {

enum class ApiFailure : std::uint8_t {
  ConnectionRefused,  // nobody listens: the server restarts; our resourceVersion stays good
  TooManyRequests,    // 429
  Expired,            // 410 Expired or Gone: our resourceVersion is too old
  TooLargeVersion,    // our resourceVersion is one that this server has not reached
  Unauthorized,       // 401
  Forbidden,          // 403
  Internal,           // 500
  Lost,               // the connection ended, or nothing came for too long
  Other,
};

struct ApiError {
  ApiFailure failure = ApiFailure::Other;
  // From a Retry-After header: the server wants the same request again after that time.
  std::optional<std::chrono::seconds> retry_after;
  std::string what;  // one line, bounded, printable
};

// An answer that is not 200. `body` may be a Status in JSON or protobuf, whichever was asked for,
// or any text (the authentication layer and proxies do not write Status).
ApiError classify_answer(
    int http_status, std::string_view body, std::optional<std::chrono::seconds> retry_after);

// An ERROR event of a watch, or a decoded body.
ApiError classify_status(const kube::ApiStatus& status);

// No answer at all: sys_errno tells refused and lost connections from the rest.
ApiError classify_transport(const Error& error);

std::string_view to_string(ApiFailure failure);

}  // namespace shunt::apiserver
