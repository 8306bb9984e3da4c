#include "snapshot/objects.h"

#include <type_traits>

namespace shunt::snapshot {
namespace {

// One function a struct for both ways: A is an Encoder and the struct const, or a Decoder and it is
// not. A new field of a struct belongs at the end of its function, and kVersion of file.cpp moves.

template <typename A, typename List, typename Each>
void list(A& a, List& values, const Each& each) {
  if constexpr (A::kReads) {
    values.resize(0);
    for (std::size_t left = a.count(); left > 0 && a.good(); --left) {
      each(values.emplace_back());
    }
  } else {
    a.number(std::uint64_t{values.size()});
    for (auto& value : values) {
      each(value);
    }
  }
}

template <typename A, typename Optional, typename Each>
void optional(A& a, Optional& value, const Each& each) {
  if constexpr (A::kReads) {
    bool is_there = false;
    a.flag(is_there);
    value.reset();
    if (is_there) {
      each(value.emplace());
    }
  } else {
    a.flag(value.has_value());
    if (value) {
      each(*value);
    }
  }
}

template <typename A, typename Texts>
void texts(A& a, Texts& values) {
  list(a, values, [&](auto& value) { a.text(value); });
}
template <typename A, typename Texts>
void shared_texts(A& a, Texts& values) {
  list(a, values, [&](auto& value) { a.shared(value); });
}

template <typename A, typename Meta>
void meta(A& a, Meta& m) {
  a.shared(m.key.name_space);
  a.text(m.key.name);
  a.text(m.uid);
  a.text(m.resource_version);
  a.signed_number(m.creation_seconds);
}

template <typename A, typename S>
void service(A& a, S& s) {
  meta(a, s.meta);
  a.flag(s.has_proxy_name_label);
  a.shared(s.type);
  a.text(s.cluster_ip);
  texts(a, s.cluster_ips);
  shared_texts(a, s.ip_families);
  texts(a, s.external_ips);
  texts(a, s.load_balancer_source_ranges);
  a.shared(s.session_affinity);
  optional(a, s.client_ip_timeout_seconds, [&](auto& value) { a.number(value); });
  a.shared(s.external_traffic_policy);
  optional(a, s.internal_traffic_policy, [&](auto& value) { a.shared(value); });
  a.number(s.health_check_node_port);
  list(a, s.ports, [&](auto& port) {
    a.shared(port.name);
    a.shared(port.protocol);
    a.number(port.port);
    a.number(port.node_port);
  });
  list(a, s.ingress, [&](auto& ingress) {
    a.text(ingress.ip);
    optional(a, ingress.ip_mode, [&](auto& value) { a.shared(value); });
  });
  a.text(s.ipvs_scheduler);
  a.text(s.ipvs_weights);
}

template <typename A, typename S>
void endpoint(A& a, S& e) {
  optional(a, e.address, [&](auto& value) { a.address(value); });
  a.flag(e.ready);
  a.flag(e.serving);
  a.flag(e.terminating);
  a.shared(e.node_name);
  shared_texts(a, e.zone_hints);
  shared_texts(a, e.node_hints);
  a.shared(e.zone);
}

template <typename A, typename S>
void slice(A& a, S& s) {
  meta(a, s.meta);
  a.text(s.service_name);
  a.flag(s.has_headless_label);
  a.shared(s.address_type);
  a.signed_number(s.trigger_time_ns);
  list(a, s.endpoints, [&](auto& one) { endpoint(a, one); });
  list(a, s.ports, [&](auto& port) {
    optional(a, port.name, [&](auto& value) { a.shared(value); });
    a.shared(port.protocol);
    a.number(port.port);
  });
}

template <typename A, typename S>
void node(A& a, S& n) {
  meta(a, n.meta);
  optional(a, n.zone, [&](auto& value) { a.text(value); });
  a.flag(n.deleting);
  texts(a, n.pod_cidrs);
  texts(a, n.taint_keys);
  list(a, n.addresses, [&](auto& one) {
    a.text(one.type);
    a.text(one.address);
  });
}

template <typename A, typename S>
void service_cidr(A& a, S& c) {
  meta(a, c.meta);
  texts(a, c.cidrs);
}

}  // namespace

void put(Encoder& out, const kube::Service& object) { service(out, object); }
void put(Encoder& out, const kube::EndpointSlice& object) { slice(out, object); }
void put(Encoder& out, const kube::Node& object) { node(out, object); }
void put(Encoder& out, const kube::ServiceCidr& object) { service_cidr(out, object); }

void take(Decoder& in, kube::Service& object) { service(in, object); }
void take(Decoder& in, kube::EndpointSlice& object) { slice(in, object); }
void take(Decoder& in, kube::Node& object) { node(in, object); }
void take(Decoder& in, kube::ServiceCidr& object) { service_cidr(in, object); }

}  // namespace shunt::snapshot
