// One stored object: its JSON, serialized once, its protobuf, encoded once when somebody wants it,
// and the few fields that selectors and events ask for. Immutable; shared by the store, the event
// log and every list and watch in flight.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "test/apiserver/json.h"
#include "test/apiserver/resource.h"

namespace shunt::test_api {

struct Object {
  std::string ns;
  std::string name;
  std::string uid;
  std::uint64_t version = 0;
  std::map<std::string, std::string> labels;
  std::string cluster_ip;  // Services only
  std::string type;        // Services only
  std::string body;        // compact JSON without kind and apiVersion: an item of a list

  // The same in protobuf. Any thread; the first one to ask encodes.
  const std::string& protobuf(const proto::Message& schema) const;

 private:
  mutable std::once_flag encode_once_;
  mutable std::string protobuf_;
};
using ObjectPtr = std::shared_ptr<const Object>;

// Takes the fields of `dom`, without kind and apiVersion, and sets metadata.resourceVersion.
ObjectPtr make_object(Json dom, std::uint64_t version);
// The same of a text, which has a metadata.
ObjectPtr make_object(const std::string& text, std::uint64_t version);
// The same object as it is deleted, or leaves a selector, at a later version.
ObjectPtr at_version(const Object& object, std::uint64_t version);

// The object on its own has kind and apiVersion first: this head, and the body without its brace.
std::string standalone_head(const Resource& resource);
std::string standalone(const Resource& resource, const Object& object);

std::string key_of(const Object& object);  // in its table

// Fields in the order of the real server's structs, so that our JSON reads like its JSON.
void sort_fields(const Resource& resource, Json& dom);

}  // namespace shunt::test_api
