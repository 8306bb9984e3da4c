// discovery.k8s.io/v1 EndpointSlice: the fields that a node proxy reads (spec/api-objects.md §4).
// Conditions are resolved (an absent `ready` means ready); addresses are parsed here, once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kube/object_key.h"
#include "net/ip_address.h"

namespace shunt::kube {

struct SliceEndpoint {
  // addresses[0], the only one that counts. Nothing when there is none or when it is not an IP
  // address; the decoder reports the latter as an issue of the slice.
  std::optional<net::IpAddress> address;
  bool ready = true;
  bool serving = true;
  bool terminating = false;
  std::string node_name;                // "" when absent
  std::vector<std::string> zone_hints;  // hints.forZones[].name
  std::vector<std::string> node_hints;  // hints.forNodes[].name
  std::string zone;                     // "" when absent; hints say where it is used, not this
  bool operator==(const SliceEndpoint&) const = default;
};

struct SlicePort {
  std::optional<std::string> name;  // absent: the port is ignored; "": the unnamed service port
  std::string protocol;             // "" means TCP
  std::int32_t port = 0;            // 0 (or absent): the port is ignored
  bool operator==(const SlicePort&) const = default;
};

struct EndpointSlice {
  ObjectMeta meta;
  std::string service_name;  // label kubernetes.io/service-name; "" when absent: the slice belongs
                             // to nobody
  bool has_headless_label = false;  // label service.kubernetes.io/headless
  std::string address_type;         // "IPv4", "IPv6", "FQDN"
  // Annotation endpoints.kubernetes.io/last-change-trigger-time in nanoseconds of Unix time; 0 when
  // absent or not a time.
  std::int64_t trigger_time_ns = 0;
  std::vector<SliceEndpoint> endpoints;
  std::vector<SlicePort> ports;
  bool operator==(const EndpointSlice&) const = default;
};

inline constexpr char kServiceNameLabel[] = "kubernetes.io/service-name";
inline constexpr char kHeadlessLabel[] = "service.kubernetes.io/headless";
inline constexpr char kTriggerTimeAnnotation[] = "endpoints.kubernetes.io/last-change-trigger-time";

}  // namespace shunt::kube
