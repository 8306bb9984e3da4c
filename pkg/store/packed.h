// Services and EndpointSlices in few bytes: one allocation an object, addresses and UIDs as bytes,
// repeated names by their number in a NamePool. A slice takes about ten bytes an endpoint.
//
// What is packed is what the structs of kube hold, all of it, but for the object's key, which is
// the store's own. Unpacking gives an equal struct. Equal objects have equal bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kube/endpoint_slice.h"
#include "kube/service.h"
#include "store/name_pool.h"

namespace shunt::store {

class Packed {
 public:
  Packed() = default;
  explicit Packed(std::span<const std::uint8_t> bytes);

  bool empty() const { return data_ == nullptr; }
  std::span<const std::uint8_t> bytes() const;
  bool operator==(const Packed& other) const;

 private:
  std::unique_ptr<std::uint8_t[]> data_;  // four bytes that say how many follow, and those
};

// Acquires the names it uses; each Packed is to be released into the same pool, once.
Packed pack(const kube::Service& service, NamePool& names);
Packed pack(const kube::EndpointSlice& slice, NamePool& names);
void release(const Packed& packed, NamePool& names);

// `bytes` are those of a Packed.
kube::Service unpack_service(
    std::span<const std::uint8_t> bytes, const kube::ObjectKey& key, const NamePool& names);
kube::EndpointSlice unpack_slice(
    std::span<const std::uint8_t> bytes, const kube::ObjectKey& key, const NamePool& names);
inline kube::Service unpack_service(
    const Packed& packed, const kube::ObjectKey& key, const NamePool& names) {
  return unpack_service(packed.bytes(), key, names);
}
inline kube::EndpointSlice unpack_slice(
    const Packed& packed, const kube::ObjectKey& key, const NamePool& names) {
  return unpack_slice(packed.bytes(), key, names);
}

}  // namespace shunt::store
