// Names of API objects.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace shunt::kube {

// namespace/name; the namespace is empty for cluster-scoped objects.
struct ObjectKey {
  std::string name_space;
  std::string name;
  auto operator<=>(const ObjectKey&) const = default;
};
inline std::string to_string(const ObjectKey& key) {
  return key.name_space.empty() ? key.name : key.name_space + "/" + key.name;
}

// What we keep of metav1.ObjectMeta. managedFields are never stored, annotations only where a kind
// names one that it reads.
struct ObjectMeta {
  ObjectKey key;
  std::string uid;
  std::string resource_version;
  std::int64_t creation_seconds =
      0;  // metadata.creationTimestamp as Unix time; 0 when absent or not a time
  auto operator<=>(const ObjectMeta&) const = default;
};

}  // namespace shunt::kube

template <>
struct std::hash<shunt::kube::ObjectKey> {
  std::size_t operator()(const shunt::kube::ObjectKey& key) const {
    const std::size_t a = std::hash<std::string>{}(key.name_space);
    const std::size_t b = std::hash<std::string>{}(key.name);
    return a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2));
  }
};
