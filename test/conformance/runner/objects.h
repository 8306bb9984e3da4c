// Kubernetes objects of a case -> the structs of pkg/kube, through the decoder that the agent uses.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "kube/decode_json.h"
#include "net/ip_address.h"

namespace shunt::conformance {

// Throws when the object cannot be decoded: the case is then broken, not the agent.
template <typename T>
std::shared_ptr<const T> decoded(const nlohmann::json& object) {
  auto result = kube::decode_object<T>(object.dump());
  if (!result) {
    throw std::runtime_error(result.error().what + " in " + object.dump());
  }
  return std::make_shared<const T>(std::move(*result));
}

// "IPv4" or "IPv6"; throws otherwise.
net::Family family_of(const std::string& text);

// An RFC 3339 time as nanoseconds of Unix time, read as the agent reads it: from the annotation of
// a slice. 0 when it is no time.
std::int64_t time_ns(const std::string& text);

}  // namespace shunt::conformance
