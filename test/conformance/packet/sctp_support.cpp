#include "packet/sctp_support.h"

#include <chrono>
#include <exception>

#include "netns/lab.h"
#include "netns/process.h"
#include "packet/first_packet.h"
#include "packet/sightings.h"

namespace shunt::conformance::packet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kClient = "198.51.100.7:3000";
constexpr const char* kService = "10.112.0.1:80";
constexpr const char* kEndpoint = "10.64.0.1:8080";
constexpr std::uint32_t kTag = 0x5c7b;
constexpr std::chrono::milliseconds kLook{100};
constexpr const char* kRules =
    "table ip probe {\n"
    "  chain before { type nat hook prerouting priority dstnat;\n"
    "    ip daddr 10.112.0.1 sctp dport 80 dnat to 10.64.0.1:8080; }\n"
    "  chain after { type nat hook postrouting priority srcnat; masquerade; }\n"
    "}\n";

net::SocketAddress address(const char* text) { return net::parse_socket_address(text).value(); }

lab::LabSpec node_with_pods() {
  lab::LabSpec spec = lab::default_lab_spec();
  spec.shared_pods = {net::parse_cidr("10.64.0.0/24").value()};
  return spec;
}

// Where the INIT came out within three seconds.
std::optional<Sighting> where_it_comes_out(Sightings& sightings) {
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(3);
  while (Clock::now() < deadline) {
    for (const Sighting& sighting : sightings.wait(kLook)) {
      if (sighting.protocol == net::Protocol::Sctp && sighting.id == kTag) {
        return sighting;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> why_no_sctp() {
  try {
    const lab::Lab lab(node_with_pods());
    lab::run_program({"ip", "netns", "exec", lab.node().name(), "nft", "-f", "-"}, kRules);
    Sightings sightings(lab, {"outside", "pods"});
    const Attempt attempt = lab.outside().run([] {
      return send_first_packet(net::Protocol::Sctp, address(kClient), address(kService), kTag);
    });
    const auto seen = where_it_comes_out(sightings);
    if (!seen) {
      return "the kernel loses SCTP that a rule rewrites";
    }
    if (seen->to != address(kEndpoint) || seen->from.ip == address(kClient).ip) {
      return "the kernel does not rewrite SCTP";
    }
    return std::nullopt;
  } catch (const std::exception& error) {
    return std::string("SCTP could not be tried: ") + error.what();
  }
}

}  // namespace shunt::conformance::packet
