// What the API server adds to an object before it stores it.
#pragma once

#include "test/apiserver/object.h"

namespace shunt::test_api {

// Fills absent fields with the values of the real server's defaulting. Allocates nothing.
void apply_defaults(const Resource& resource, Json& object);

// Metadata that the server owns: uid and creationTimestamp.
void stamp_identity(const ObjectPtr& current, Json& object);  // `current`: null for a new object

// metadata.generation of the resources that count it: one more when anything but metadata and
// status changed.
void stamp_generation(const Resource& resource, const ObjectPtr& current, Json& object);

}  // namespace shunt::test_api
