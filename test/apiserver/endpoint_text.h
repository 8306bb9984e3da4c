// Endpoints and slices as JSON text: what the scenarios of the load generator look at and change.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "test/apiserver/rfc3339.h"

namespace shunt::test_api {

struct EndpointConditions {
  bool ready = true;
  bool serving = true;
  bool terminating = false;
  auto operator<=>(const EndpointConditions&) const = default;
};

// Absent ones read as a client reads them.
EndpointConditions conditions_of(std::string_view endpoint);
std::string with_conditions(std::string_view endpoint, EndpointConditions conditions);

// Who an endpoint is: its pod, or its address when it has none.
std::string pod_of(std::string_view endpoint);

// A new pod in the place of an endpoint's: other name, uid and address, not yet ready.
std::string successor(
    std::string_view endpoint, const std::string& pod, const std::string& address);

// The slice as its controller writes it after a change: one generation on, with the time of the
// change that triggered it.
std::string stamped(std::string_view slice, UnixTime now);

// The slice with the conditions of one endpoint replaced; nothing when it has not so many.
std::optional<std::string> with_endpoint_conditions(
    std::string_view slice, std::size_t index, EndpointConditions conditions);

}  // namespace shunt::test_api
