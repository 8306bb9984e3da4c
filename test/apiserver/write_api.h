// Changing objects: the rules that POST, PUT, PATCH, DELETE, manifests and /_test/apply share.
#pragma once

#include "test/apiserver/store.h"

namespace shunt::test_api {

struct Put {
  bool create = true;   // may make a new object
  bool replace = true;  // may replace an existing one
  bool raw = false;     // stored as given: no defaulting, no sorting of fields
};

// `object` may carry kind and apiVersion; they are dropped. Answers 409 and 404 as `how` demands.
// An object that would not change is left alone: no new version, no event.
Answer<Change> put_object(Store& store, TableRef table, Json object, Put how);
Answer<Change> merge_object(
    Store& store, TableRef table, const std::string& key, const Json& patch);
Answer<Change> delete_object(Store& store, TableRef table, const std::string& key);

}  // namespace shunt::test_api
