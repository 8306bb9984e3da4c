#include "apiserver/api_error.h"

#include <catch2/catch_test_macros.hpp>
#include <cerrno>

#include "apiserver/watch_request.h"
#include "apiserver/watch_rules.h"
#include "kube/endpoint_slice.h"
#include "kube/node.h"
#include "kube/service.h"

namespace shunt::apiserver {
namespace {

TEST_CASE("a Status is classified by its reason, and by its code where it gives none") {
  struct Case {
    int code;
    const char* reason;
    ApiFailure failure;
  };
  for (const Case& c : std::initializer_list<Case>{
           {410, "Expired", ApiFailure::Expired},
           {0, "Gone", ApiFailure::Expired},
           {410, "", ApiFailure::Expired},
           {410, "Unknown", ApiFailure::Expired},
           {410, "Conflict", ApiFailure::Other},
           {429, "", ApiFailure::TooManyRequests},
           {429, "Anything", ApiFailure::TooManyRequests},
           {0, "TooManyRequests", ApiFailure::TooManyRequests},
           {500, "", ApiFailure::Internal},
           {500, "InternalError", ApiFailure::Internal},
           {500, "ServiceUnavailable", ApiFailure::Other},
           {401, "", ApiFailure::Unauthorized},
           {403, "Forbidden", ApiFailure::Forbidden},
           {504, "Timeout", ApiFailure::Other},
           {422, "Invalid", ApiFailure::Other}}) {
    CAPTURE(c.code, c.reason);
    kube::ApiStatus status;
    status.code = c.code;
    status.reason = c.reason;
    CHECK(classify_status(status).failure == c.failure);
  }
}

TEST_CASE("older servers say in words that a version is too large") {
  kube::ApiStatus status;
  status.code = 504;
  status.reason = "Timeout";
  status.message = "Timeout: Too large resource version: 9, current: 7";
  CHECK(classify_status(status).failure == ApiFailure::TooLargeVersion);
}

TEST_CASE("an answer that is no Status is classified by its HTTP code and kept as one short line") {
  const ApiError error =
      classify_answer(429, "slow\ndown\x1b" + std::string(5000, 'x'), std::chrono::seconds(3));
  CHECK(error.failure == ApiFailure::TooManyRequests);
  CHECK(error.retry_after == std::chrono::seconds(3));
  CHECK(error.what.starts_with("HTTP 429: slow down x"));
  CHECK(error.what.size() < 600);
  CHECK(classify_answer(403, "", std::nullopt).failure == ApiFailure::Forbidden);
  CHECK(classify_answer(500, "{}", std::nullopt).failure == ApiFailure::Internal);
}

TEST_CASE("transport errors tell refused and lost connections from the rest") {
  const auto kind = [](int error) { return classify_transport({Errc::Again, error, "x"}).failure; };
  CHECK(kind(ECONNREFUSED) == ApiFailure::ConnectionRefused);
  CHECK(kind(ECONNRESET) == ApiFailure::Lost);
  CHECK(kind(ETIMEDOUT) == ApiFailure::Lost);
  CHECK(kind(EHOSTUNREACH) == ApiFailure::Other);
  CHECK(kind(0) == ApiFailure::Other);
}

TEST_CASE("each resource is read with its own selectors") {
  const ListRequest all{"", 0, ""};
  CHECK(
      list_target(resource_query<kube::EndpointSlice>("n"), all) ==
      "/apis/discovery.k8s.io/v1/endpointslices?labelSelector=%21service.kubernetes.io%2Fheadless");
  CHECK(
      list_target(resource_query<kube::Node>("node-1.example"), all) ==
      "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1.example");
  CHECK(
      list_target(resource_query<kube::Node>("a&watch=1"), all) ==
      "/api/v1/nodes?fieldSelector=metadata.name%3Da%26watch%3D1");
  CHECK(
      list_target(resource_query<kube::ServiceCidr>("n"), all) ==
      "/apis/networking.k8s.io/v1/servicecidrs");
  CHECK(
      watch_target(
          resource_query<kube::ServiceCidr>("n"),
          {.resource_version = "12", .timeout = std::chrono::seconds(3723)}) ==
      "/apis/networking.k8s.io/v1/servicecidrs?watch=true&allowWatchBookmarks=true"
      "&resourceVersion=12&timeoutSeconds=3723&timeout=1h2m3s");
  CHECK(percent_encode("aZ09-._~ /%+\xff") == "aZ09-._~%20%2F%25%2B%FF");
}

}  // namespace
}  // namespace shunt::apiserver
