#include "runner/objects.h"

namespace shunt::conformance {

net::Family family_of(const std::string& text) {
  for (const net::Family family : {net::Family::IPv4, net::Family::IPv6}) {
    if (text == net::to_string(family)) {
      return family;
    }
  }
  throw std::runtime_error("unknown family \"" + text + "\"");
}

std::int64_t time_ns(const std::string& text) {
  const nlohmann::json slice = {
      {"apiVersion", "discovery.k8s.io/v1"},
      {"kind", "EndpointSlice"},
      {"metadata",
       {{"name", "time"},
        {"namespace", "time"},
        {"annotations", {{kube::kTriggerTimeAnnotation, text}}}}}};
  return decoded<kube::EndpointSlice>(slice)->trigger_time_ns;
}

}  // namespace shunt::conformance
