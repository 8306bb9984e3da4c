// A copy of what an ObjectStore holds, packed as it is there: made in moments by the sync thread,
// read by another one at its leisure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kube/endpoint_slice.h"
#include "kube/node.h"
#include "kube/service.h"
#include "store/name_pool.h"

namespace shunt::store {

using NodePtr = std::shared_ptr<const kube::Node>;
using ServiceCidrPtr = std::shared_ptr<const kube::ServiceCidr>;

class Image {
 public:
  explicit Image(const NamePool& names) : names_(names) {}

  NodePtr node;  // null: none is known
  std::vector<ServiceCidrPtr> service_cidrs;
  bool service_cidrs_known = false;  // else an empty list says nothing

  // In no order.
  void each_service(const std::function<void(const kube::Service&)>& take) const;
  void each_slice(const std::function<void(const kube::EndpointSlice&)>& take) const;

  // The packed bytes of both, keys included.
  std::size_t bytes() const;

  // The store, while it makes one.
  void add_service(const kube::ObjectKey& key, std::span<const std::uint8_t> packed) {
    add(services_, key, packed);
  }
  void add_slice(const kube::ObjectKey& key, std::span<const std::uint8_t> packed) {
    add(slices_, key, packed);
  }

 private:
  // Records in pieces that never grow, so that nothing is copied twice. A record is three sizes,
  // and the namespace, name and packed bytes that they measure.
  using Pieces = std::vector<std::vector<std::uint8_t>>;
  static void add(Pieces& out, const kube::ObjectKey& key, std::span<const std::uint8_t> packed);

  NamePool names_;
  Pieces services_;
  Pieces slices_;
};

}  // namespace shunt::store
