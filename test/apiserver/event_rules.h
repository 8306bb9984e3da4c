// What the real server refuses of an Event of events.k8s.io/v1.
#pragma once

#include <optional>

#include "test/apiserver/object.h"
#include "test/apiserver/status.h"

namespace shunt::test_api {

// `before` is null for a new one: of one that is there, nothing but its series may change.
std::optional<Status> refused_event(
    const Resource& resource, const ObjectPtr& before, const Json& event);

}  // namespace shunt::test_api
