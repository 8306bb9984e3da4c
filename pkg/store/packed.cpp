#include "store/packed.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "store/packer.h"

namespace shunt::store {
namespace {

void put_meta(Packer& out, const kube::ObjectMeta& meta) {
  out.text(meta.uid);
  out.text(meta.resource_version);
  out.signed_number(meta.creation_seconds);
}

kube::ObjectMeta take_meta(Unpacker& in, const kube::ObjectKey& key) {
  kube::ObjectMeta meta;
  meta.key = key;
  meta.uid = in.text();
  meta.resource_version = in.text();
  meta.creation_seconds = in.signed_number();
  return meta;
}

template <typename List, typename Put>
void put_list(Packer& out, const List& list, const Put& put) {
  out.number(list.size());
  for (const auto& element : list) {
    put(element);
  }
}

template <typename T, typename Take>
std::vector<T> take_list(Unpacker& in, const Take& take) {
  std::vector<T> list;
  const std::size_t size = in.number();
  list.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    list.push_back(take());
  }
  return list;
}

void put_texts(Packer& out, const std::vector<std::string>& texts) {
  put_list(out, texts, [&](const std::string& text) { out.text(text); });
}
std::vector<std::string> take_texts(Unpacker& in) {
  return take_list<std::string>(in, [&] { return in.text(); });
}
void put_names(Packer& out, const std::vector<std::string>& names) {
  put_list(out, names, [&](const std::string& name) { out.name(name); });
}
std::vector<std::string> take_names(Unpacker& in) {
  return take_list<std::string>(in, [&] { return in.name(); });
}

void put_name(Packer& out, const std::optional<std::string>& name) {
  out.flags(name ? 1 : 0);
  if (name) {
    out.name(*name);
  }
}
std::optional<std::string> take_name(Unpacker& in) {
  return in.flags() != 0 ? std::optional(in.name()) : std::nullopt;
}

// ---- Service

void put_port(Packer& out, const kube::ServicePortSpec& port) {
  out.name(port.name);
  out.name(port.protocol);
  out.signed_number(port.port);
  out.signed_number(port.node_port);
}
kube::ServicePortSpec take_port(Unpacker& in) {
  kube::ServicePortSpec port;
  port.name = in.name();
  port.protocol = in.name();
  port.port = static_cast<std::int32_t>(in.signed_number());
  port.node_port = static_cast<std::int32_t>(in.signed_number());
  return port;
}

// ---- EndpointSlice

constexpr unsigned kReady = 1;
constexpr unsigned kServing = 2;
constexpr unsigned kTerminating = 4;
constexpr unsigned kIPv4 = 8;
constexpr unsigned kIPv6 = 16;
constexpr unsigned kNode = 32;
constexpr unsigned kHints = 64;
constexpr unsigned kZone = 128;

// A node lies in one zone, so both are one name: a zone costs a longer name for each node, and an
// endpoint nothing. "4:eu-1node-a" can be told from every other pair, whatever the two hold.
void join_place(std::string& place, const kube::SliceEndpoint& endpoint) {
  place.assign(std::to_string(endpoint.zone.size()));
  place.append(":").append(endpoint.zone).append(endpoint.node_name);
}
void split_place(std::string_view place, kube::SliceEndpoint& endpoint) {
  std::size_t size = 0;
  const auto [colon, error] = std::from_chars(place.data(), place.data() + place.size(), size);
  (void)error;  // join_place() wrote it
  const auto zone = static_cast<std::size_t>(colon - place.data()) + 1;
  endpoint.zone = place.substr(zone, size);
  endpoint.node_name = place.substr(zone + size);
}

// `place` is room that is used again.
void put_endpoint(Packer& out, const kube::SliceEndpoint& endpoint, std::string& place) {
  const bool hints = !endpoint.zone_hints.empty() || !endpoint.node_hints.empty();
  unsigned flags = 0;
  flags |= endpoint.ready ? kReady : 0U;
  flags |= endpoint.serving ? kServing : 0U;
  flags |= endpoint.terminating ? kTerminating : 0U;
  if (endpoint.address) {
    flags |= endpoint.address->family == net::Family::IPv4 ? kIPv4 : kIPv6;
  }
  if (!endpoint.zone.empty()) {
    flags |= kZone;
  } else if (!endpoint.node_name.empty()) {
    flags |= kNode;
  }
  flags |= hints ? kHints : 0U;
  out.flags(static_cast<std::uint8_t>(flags));
  if (endpoint.address) {
    out.address(*endpoint.address);
  }
  if (!endpoint.zone.empty()) {
    join_place(place, endpoint);
    out.name(place);
  } else if (!endpoint.node_name.empty()) {
    out.name(endpoint.node_name);
  }
  if (hints) {
    put_names(out, endpoint.zone_hints);
    put_names(out, endpoint.node_hints);
  }
}

kube::SliceEndpoint take_endpoint(Unpacker& in) {
  kube::SliceEndpoint endpoint;
  const unsigned flags = in.flags();
  endpoint.ready = (flags & kReady) != 0;
  endpoint.serving = (flags & kServing) != 0;
  endpoint.terminating = (flags & kTerminating) != 0;
  if ((flags & (kIPv4 | kIPv6)) != 0) {
    endpoint.address = in.address((flags & kIPv4) != 0 ? net::Family::IPv4 : net::Family::IPv6);
  }
  if ((flags & kZone) != 0) {
    split_place(in.name(), endpoint);
  } else if ((flags & kNode) != 0) {
    endpoint.node_name = in.name();
  }
  if ((flags & kHints) != 0) {
    endpoint.zone_hints = take_names(in);
    endpoint.node_hints = take_names(in);
  }
  return endpoint;
}

void put_slice_port(Packer& out, const kube::SlicePort& port) {
  put_name(out, port.name);
  out.name(port.protocol);
  out.signed_number(port.port);
}
kube::SlicePort take_slice_port(Unpacker& in) {
  kube::SlicePort port;
  port.name = take_name(in);
  port.protocol = in.name();
  port.port = static_cast<std::int32_t>(in.signed_number());
  return port;
}

}  // namespace

Packed::Packed(std::span<const std::uint8_t> bytes) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  data_.reset(new std::uint8_t[sizeof size + size]);
  std::memcpy(data_.get(), &size, sizeof size);
  std::copy(bytes.begin(), bytes.end(), data_.get() + sizeof size);
}

std::span<const std::uint8_t> Packed::bytes() const {
  std::uint32_t size = 0;
  if (data_ == nullptr) {
    return {};
  }
  std::memcpy(&size, data_.get(), sizeof size);
  return {data_.get() + sizeof size, size};
}

bool Packed::operator==(const Packed& other) const {
  const auto a = bytes();
  const auto b = other.bytes();
  return empty() == other.empty() && std::equal(a.begin(), a.end(), b.begin(), b.end());
}

Packed pack(const kube::Service& service, NamePool& names) {
  Packer out(names);
  put_meta(out, service.meta);
  const bool annotated = !service.ipvs_scheduler.empty() || !service.ipvs_weights.empty();
  out.flags(static_cast<std::uint8_t>(
      (service.has_proxy_name_label ? 1 : 0) | (service.client_ip_timeout_seconds ? 2 : 0) |
      (annotated ? 4 : 0)));
  out.name(service.type);
  out.text(service.cluster_ip);
  put_texts(out, service.cluster_ips);
  put_names(out, service.ip_families);
  put_texts(out, service.external_ips);
  put_texts(out, service.load_balancer_source_ranges);
  out.name(service.session_affinity);
  if (service.client_ip_timeout_seconds) {
    out.signed_number(*service.client_ip_timeout_seconds);
  }
  out.name(service.external_traffic_policy);
  put_name(out, service.internal_traffic_policy);
  out.signed_number(service.health_check_node_port);
  put_list(out, service.ports, [&](const auto& port) { put_port(out, port); });
  put_list(out, service.ingress, [&](const kube::LoadBalancerIngress& ingress) {
    out.text(ingress.ip);
    put_name(out, ingress.ip_mode);
  });
  if (annotated) {
    out.text(service.ipvs_scheduler);
    out.text(service.ipvs_weights);
  }
  return Packed(out.take());
}

kube::Service unpack_service(
    std::span<const std::uint8_t> bytes, const kube::ObjectKey& key, const NamePool& names) {
  Unpacker in(bytes, names);
  kube::Service service;
  service.meta = take_meta(in, key);
  const unsigned flags = in.flags();
  service.has_proxy_name_label = (flags & 1) != 0;
  service.type = in.name();
  service.cluster_ip = in.text();
  service.cluster_ips = take_texts(in);
  service.ip_families = take_names(in);
  service.external_ips = take_texts(in);
  service.load_balancer_source_ranges = take_texts(in);
  service.session_affinity = in.name();
  if ((flags & 2) != 0) {
    service.client_ip_timeout_seconds = static_cast<std::int32_t>(in.signed_number());
  }
  service.external_traffic_policy = in.name();
  service.internal_traffic_policy = take_name(in);
  service.health_check_node_port = static_cast<std::int32_t>(in.signed_number());
  service.ports = take_list<kube::ServicePortSpec>(in, [&] { return take_port(in); });
  service.ingress = take_list<kube::LoadBalancerIngress>(in, [&] {
    kube::LoadBalancerIngress ingress;
    ingress.ip = in.text();
    ingress.ip_mode = take_name(in);
    return ingress;
  });
  if ((flags & 4) != 0) {
    service.ipvs_scheduler = in.text();
    service.ipvs_weights = in.text();
  }
  return service;
}

Packed pack(const kube::EndpointSlice& slice, NamePool& names) {
  Packer out(names);
  put_meta(out, slice.meta);
  out.text(slice.service_name);
  out.flags(slice.has_headless_label ? 1 : 0);
  out.name(slice.address_type);
  out.signed_number(slice.trigger_time_ns);
  std::string place;
  put_list(out, slice.endpoints, [&](const auto& endpoint) { put_endpoint(out, endpoint, place); });
  put_list(out, slice.ports, [&](const auto& port) { put_slice_port(out, port); });
  return Packed(out.take());
}

kube::EndpointSlice unpack_slice(
    std::span<const std::uint8_t> bytes, const kube::ObjectKey& key, const NamePool& names) {
  Unpacker in(bytes, names);
  kube::EndpointSlice slice;
  slice.meta = take_meta(in, key);
  slice.service_name = in.text();
  slice.has_headless_label = in.flags() != 0;
  slice.address_type = in.name();
  slice.trigger_time_ns = in.signed_number();
  slice.endpoints = take_list<kube::SliceEndpoint>(in, [&] { return take_endpoint(in); });
  slice.ports = take_list<kube::SlicePort>(in, [&] { return take_slice_port(in); });
  return slice;
}

void release(const Packed& packed, NamePool& names) {
  if (!packed.empty()) {
    const Unpacker in(packed.bytes(), names);
    for (const NamePool::Id id : in.dictionary()) {
      names.release(id);
    }
  }
}

}  // namespace shunt::store
