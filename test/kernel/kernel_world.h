// What tests of the nftables back end on the real kernel share: a network namespace for each, plans
// to apply, and a back end as the daemon makes it.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend/nft/nft_backend.h"
#include "backend/nft/wire.h"

namespace shunt::test {

using namespace backend;       // NOLINT(google-build-using-namespace): a test's helper
using namespace backend::nft;  // NOLINT(google-build-using-namespace): a test's helper
using desired::DesiredState;
using desired::Fate;
using desired::FrontendKey;
using desired::FrontendPlan;

// Moves the test into a network namespace of its own; the sockets it opens and the programs it runs
// follow.
inline void enter_namespace() {
  if (::geteuid() != 0) {
    SKIP("needs root");
  }
  REQUIRE(::unshare(CLONE_NEWNET) == 0);
}

inline std::string run(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 65536> buffer;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    out.append(buffer.data(), got);
  }
  const int status = ::pclose(pipe);
  INFO(command << "\n" << out);
  REQUIRE(status == 0);
  return out;
}

inline net::IpAddress ip(net::Family family, unsigned kind, unsigned n) {
  net::IpAddress out{family, {}};
  const std::size_t last = out.size() - 1;
  out.bytes[0] = family == net::Family::IPv4 ? 10 : 0xfd;
  out.bytes[1] = static_cast<std::uint8_t>(kind + (n >> 16 & 0x3));
  out.bytes[last - 1] = static_cast<std::uint8_t>(n >> 8);
  out.bytes[last] = static_cast<std::uint8_t>(n);
  return out;
}

struct World {
  explicit World(net::Family of) : family(of) {}

  FrontendKey frontend(unsigned n) const {
    return {ip(family, 96, n), n % 3 == 0 ? net::Protocol::Udp : net::Protocol::Tcp, net::Port{80}};
  }
  // Service n: a ClusterIP, and what its number gives it: affinity, a balancer address with policy
  // Local, source ranges, a NodePort.
  void set(unsigned n, const std::set<unsigned>& endpoints, bool plain = false) {
    FrontendPlan plan;
    plan.service = "ns/service-" + std::to_string(n) + ":http";
    plan.endpoints = list(endpoints);
    plan.fate = plan.endpoints ? Fate::Balance : n % 7 == 6 ? Fate::Drop : Fate::Refuse;
    const bool outside = !plain && n % 3 == 1;
    if (!plain && n % 4 == 1) {
      desired::Affinity& affinity = plan.affinity.emplace();
      affinity.timeout = std::chrono::seconds(n % 8 == 1 ? 10800 : 60);
      affinity.group = frontend(n);
      affinity.local_memory = outside;
    }
    std::vector<desired::Claim> claims{claim(frontend(n), plan)};
    if (outside) {
      plan.reach = n % 2 == 0 ? desired::Reach::External : desired::Reach::ExternalLocal;
      if (plan.reach == desired::Reach::ExternalLocal && !endpoints.empty()) {
        plan.local_endpoints = list({*endpoints.begin()});
      }
      claims.push_back(claim(
          desired::node_port_key(
              family, frontend(n).protocol, net::Port{static_cast<std::uint16_t>(30000 + n)}),
          plan));
      plan.sources = ranges(n);
      claims.push_back(claim({ip(family, 192, n), frontend(n).protocol, net::Port{80}}, plan));
    }
    std::vector<desired::Conflict> conflicts;
    wanted.set_service(
        {"ns", std::to_string(n)}, {}, std::move(claims), delta.frontends, conflicts);
  }
  desired::Claim claim(const FrontendKey& key, const FrontendPlan& plan) const {
    return {key, std::make_shared<const FrontendPlan>(plan)};
  }
  desired::EndpointListPtr list(const std::set<unsigned>& endpoints) const {
    desired::EndpointList out;
    for (const unsigned e : endpoints) {
      out.push_back({ip(family, 64, e), net::Port{8080}});
    }
    std::sort(out.begin(), out.end());
    return out.empty() ? nullptr : std::make_shared<const desired::EndpointList>(std::move(out));
  }
  // Another set of ranges with every endpoint that changes; some overlap, some touch.
  std::shared_ptr<const std::vector<net::Cidr>> ranges(unsigned n) {
    const std::uint8_t bits = family == net::Family::IPv4 ? 24 : 120;
    std::vector<net::Cidr> out;
    for (unsigned i = 0; i <= ++changes % 4; ++i) {
      net::IpAddress base = ip(family, 198, n * 4 + i * (changes % 3));
      base.bytes[base.size() - 2] = base.bytes[base.size() - 1];
      base.bytes[base.size() - 1] = 0;
      out.push_back({base, bits});
    }
    return std::make_shared<const std::vector<net::Cidr>>(std::move(out));
  }
  void remove(unsigned n) {
    std::vector<desired::Conflict> conflicts;
    wanted.set_service({"ns", std::to_string(n)}, {}, {}, delta.frontends, conflicts);
  }
  ApplyReport apply(NftBackend& backend) {
    ApplyReport report = backend.apply(wanted, delta);
    delta = {};
    INFO((report.outcome ? std::string() : report.outcome.error().what));
    REQUIRE(report.outcome);
    REQUIRE(report.set_aside.empty());
    return report;
  }

  net::Family family;
  DesiredState wanted;
  Delta delta;
  unsigned changes = 0;
};

inline std::unique_ptr<NftBackend> start(net::Family family, const ProgramSettings& settings = {}) {
  auto transport = KernelTransport::open();
  REQUIRE(transport);
  auto purge_transport = KernelTransport::open();
  REQUIRE(purge_transport);
  const std::vector<std::uint32_t> own_ports{(*transport)->port(), (*purge_transport)->port()};
  auto backend = std::make_unique<NftBackend>(
      family,
      settings,
      std::move(*transport),
      std::make_unique<AffinityPurger>(family, std::move(*purge_transport)),
      [=] { return KernelChangeFeed::open(family, own_ports); });
  const auto adopted = backend->adopt();
  INFO((adopted ? std::string() : adopted.error().what));
  REQUIRE(adopted);
  return backend;
}

inline ProgramSettings by_source() {
  return {0x4000, false, {LocalDetector::Kind::SourceRange, {}}};
}

}  // namespace shunt::test
