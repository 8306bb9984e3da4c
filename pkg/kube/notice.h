// What an operator must be told about an object: what becomes a Kubernetes Event, where the API
// server can be reached (spec/config.md §12), besides a log line and a metric. Immutable values;
// whoever decides, says so once for each change of its mind.
#pragma once

#include <functional>
#include <string>

#include "kube/object_key.h"

namespace shunt::kube {

struct Notice {
  enum class Kind : std::uint8_t { Service, EndpointSlice, Node, ServiceCidr };
  bool warning = true;  // else Normal
  Kind kind = Kind::Service;
  ObjectKey object;    // of a Node or ServiceCIDR: without a namespace
  std::string uid;     // "" when not known
  std::string reason;  // "SetAside": one word, for machines
  std::string action;  // "Plan", "Listen": what was being done
  std::string note;    // for people
  bool operator==(const Notice&) const = default;
};

// Called on the thread that decides; must not wait.
using NoticeSink = std::function<void(const Notice&)>;

}  // namespace shunt::kube
