#include "apiserver/api_error.h"

#include <algorithm>
#include <cerrno>

#include "kube/decode_json.h"
#include "kube/decode_protobuf.h"

namespace shunt::apiserver {
namespace {

constexpr std::size_t kMaxText = 512;

std::string one_line(std::string_view text) {
  std::string out(text.substr(0, kMaxText));
  std::ranges::replace_if(
      out, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, ' ');
  return out;
}

// Before 1.20 or so, servers said it in words only.
bool is_too_large_version(const kube::ApiStatus& status) {
  if (std::ranges::find(status.cause_reasons, "ResourceVersionTooLarge") !=
      status.cause_reasons.end()) {
    return true;
  }
  return status.reason == "Timeout" &&
         status.message.find("Too large resource version") != std::string::npos;
}

// The code counts only where the reason says nothing.
ApiFailure failure_of(const kube::ApiStatus& status) {
  const bool no_reason = status.reason.empty() || status.reason == "Unknown";
  if (is_too_large_version(status)) {
    return ApiFailure::TooLargeVersion;
  }
  if (status.reason == "Expired" || status.reason == "Gone" || (no_reason && status.code == 410)) {
    return ApiFailure::Expired;
  }
  if (status.reason == "TooManyRequests" || status.code == 429) {
    return ApiFailure::TooManyRequests;
  }
  if (status.reason == "Unauthorized" || (no_reason && status.code == 401)) {
    return ApiFailure::Unauthorized;
  }
  if (status.reason == "Forbidden" || (no_reason && status.code == 403)) {
    return ApiFailure::Forbidden;
  }
  if (status.reason == "InternalError" || (no_reason && status.code == 500)) {
    return ApiFailure::Internal;
  }
  return ApiFailure::Other;
}

}  // namespace

ApiError classify_answer(
    int http_status, std::string_view body, std::optional<std::chrono::seconds> retry_after) {
  const bool protobuf = kube::protobuf::has_envelope(body);
  auto decoded = protobuf ? kube::protobuf::decode_status(body) : kube::decode_status(body);
  kube::ApiStatus status;
  if (decoded && decoded->code != 0) {
    status = std::move(*decoded);
  } else {
    status.code = http_status;
    status.message = protobuf ? "a protobuf body that is no Status" : body;
  }
  ApiError error = classify_status(status);
  error.retry_after = retry_after;
  error.what = "HTTP " + std::to_string(http_status) + ": " + error.what;
  return error;
}

ApiError classify_status(const kube::ApiStatus& status) {
  ApiError error;
  error.failure = failure_of(status);
  error.what = one_line(status.message);
  if (!status.reason.empty()) {
    error.what += " (" + one_line(status.reason) + ")";
  }
  return error;
}

ApiError classify_transport(const Error& error) {
  switch (error.sys_errno) {
    case ECONNREFUSED:
      return {ApiFailure::ConnectionRefused, std::nullopt, error.what};
    case ECONNRESET:
    case EPIPE:
    case ETIMEDOUT:
      return {ApiFailure::Lost, std::nullopt, error.what};
    default:
      return {ApiFailure::Other, std::nullopt, error.what};
  }
}

std::string_view to_string(ApiFailure failure) {
  switch (failure) {
    case ApiFailure::ConnectionRefused:
      return "connection refused";
    case ApiFailure::TooManyRequests:
      return "too many requests";
    case ApiFailure::Expired:
      return "resource version expired";
    case ApiFailure::TooLargeVersion:
      return "resource version too large";
    case ApiFailure::Unauthorized:
      return "unauthorized";
    case ApiFailure::Forbidden:
      return "forbidden";
    case ApiFailure::Internal:
      return "internal error";
    case ApiFailure::Lost:
      return "connection lost";
    case ApiFailure::Other:
      return "other";
  }
  return "?";
}

}  // namespace shunt::apiserver
