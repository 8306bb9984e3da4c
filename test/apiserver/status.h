// The Status object: how the API server says no. Each function is one answer of the real server,
// word for word where we have a recording of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "test/apiserver/json.h"
#include "test/apiserver/resource.h"

namespace shunt::test_api {

// NOLINTNEXTLINE(bugprone-exception-escape): nlohmann checks invariants in its noexcept move
struct Status {
  int code = 0;
  std::string reason;
  std::string message;
  Json details;  // null: absent
  int retry_after_seconds = 0;

  Json to_json() const;
};

template <typename T = void>
using Answer = tl::expected<T, Status>;
inline tl::unexpected<Status> refuse(Status status) {
  return tl::unexpected<Status>(std::move(status));
}

Status unauthorized();
Status forbidden(std::string_view user, std::string_view verb, const Target& target);
Status path_not_found();
Status not_found(const Resource& resource, std::string_view name);
Status already_exists(const Resource& resource, std::string_view name);
Status conflict(const Resource& resource, std::string_view name);
Status method_not_allowed();
Status bad_request(std::string message);
Status not_acceptable();
Status unsupported_media_type();
// A ListOptions field that contradicts another: 422. `value_reason` is FieldValueForbidden or
// FieldValueNotSupported.
Status invalid_options(
    std::string_view field, std::string_view value_reason, const std::string& message);
Status invalid_object(const Resource& resource, std::string_view name, const std::string& message);
Status expired(std::string message);
Status expired_watch(std::uint64_t asked, std::uint64_t oldest);
Status expired_continue();
Status version_too_large(std::uint64_t asked, std::uint64_t current);
// The usual reason and message of an HTTP code, for fault injection.
Status generic(int code);

}  // namespace shunt::test_api
