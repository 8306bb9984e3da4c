#include "bench/suite/chains.h"

#include <fmt/format.h>

#include <iterator>

#include "bench/suite/objects.h"

namespace shunt::bench {

std::string chain_per_service(std::size_t services, std::size_t endpoints) {
  std::string text = "table ip bench-chains {\n";
  const auto put = std::back_inserter(text);
  for (std::size_t s = 0; s < services; ++s) {
    for (std::size_t e = 0; e < endpoints; ++e) {
      fmt::format_to(
          put,
          "chain endpoint-{}-{} {{ meta l4proto tcp dnat to {}; }}\n",
          s,
          e,
          net::to_string(load_pod(s * endpoints + e)));
    }
    fmt::format_to(put, "chain service-{} {{ numgen random mod {} vmap {{ ", s, endpoints);
    for (std::size_t e = 0; e < endpoints; ++e) {
      fmt::format_to(put, "{}{} : goto endpoint-{}-{}", e == 0 ? "" : ", ", e, s, e);
    }
    text += " }; }\n";
  }
  text += "map service-ips { type ipv4_addr . inet_proto . inet_service : verdict\nelements = {\n";
  for (std::size_t s = 0; s < services; ++s) {
    fmt::format_to(
        put,
        "{} . tcp . {} : goto service-{},\n",
        net::to_string(load_address(s).ip),
        net::number(load_address(s).port),
        s);
  }
  text +=
      "} }\n"
      "chain services { ip daddr . meta l4proto . th dport vmap @service-ips; }\n"
      "chain nat-prerouting { type nat hook prerouting priority dstnat; jump services; }\n"
      "chain nat-output { type nat hook output priority -100; jump services; }\n"
      "}\n";
  return text;
}

}  // namespace shunt::bench
