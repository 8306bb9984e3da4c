#include "store/packed.h"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <string>
#include <vector>

namespace shunt::store {
namespace {

const kube::ObjectKey kKey{"shop", "web"};

kube::Service full_service() {
  kube::Service s;
  s.meta = {kKey, "0a1b2c3d-0000-4fff-8abc-00112233ffee", "123456", 1'700'000'000};
  s.has_proxy_name_label = true;
  s.type = "LoadBalancer";
  s.cluster_ip = "10.96.0.1";
  s.cluster_ips = {"10.96.0.1", "fd00::1"};
  s.ip_families = {"IPv4", "IPv6"};
  s.external_ips = {"203.0.113.9", "not an address"};
  s.load_balancer_source_ranges = {"10.0.0.0/8", " 192.0.2.0/24"};
  s.session_affinity = "ClientIP";
  s.client_ip_timeout_seconds = -5;
  s.external_traffic_policy = "Local";
  s.internal_traffic_policy = "";
  s.health_check_node_port = 32000;
  s.ports = {{"http", "TCP", 80, 30080}, {"", "", -1, 0}};
  s.ingress = {{"192.0.2.4", "VIP"}, {"", std::nullopt}};
  s.ipvs_scheduler = "mh";
  s.ipvs_weights = "zone:a=3,*=0";
  return s;
}

kube::EndpointSlice full_slice() {
  kube::EndpointSlice s;
  s.meta = {kKey, "uid", "0123", -62'135'596'800};
  s.service_name = "web";
  s.has_headless_label = true;
  s.address_type = "IPv4";
  s.trigger_time_ns = 1'700'000'000'123'456'789;
  s.endpoints.resize(6);
  s.endpoints[0].address = net::parse_ip("10.0.0.1");
  s.endpoints[0].node_name = "node-1";
  s.endpoints[0].zone_hints = {"a", "b", "a"};
  s.endpoints[1].ready = false;
  s.endpoints[1].serving = false;
  s.endpoints[1].terminating = true;
  s.endpoints[1].address = net::parse_ip("fd00::2");
  s.endpoints[2].node_hints = {"node-1"};
  s.endpoints[3].node_name = "node-1";
  s.endpoints[3].zone = "eu-1";
  s.endpoints[4].zone = "4:eu-1";
  s.endpoints[5].node_name = std::string("\0:", 2);
  s.endpoints[5].zone = std::string(":7\0", 3);
  s.ports = {{"http", "TCP", 8080}, {"", "SCTP", 70000}, {std::nullopt, "", 0}};
  return s;
}

TEST_CASE("what was packed comes back, every field of it") {
  NamePool names;
  CHECK(unpack_service(pack(full_service(), names), kKey, names) == full_service());
  CHECK(unpack_slice(pack(full_slice(), names), kKey, names) == full_slice());
  CHECK(unpack_service(pack(kube::Service{}, names), {}, names) == kube::Service{});
  CHECK(unpack_slice(pack(kube::EndpointSlice{}, names), {}, names) == kube::EndpointSlice{});
}

TEST_CASE("a text comes back letter by letter, whatever shorter form it resembles") {
  NamePool names;
  for (const char* text :
       {"",
        "0",
        "00",
        "18446744073709551616",
        "9999999999999999999",
        "-1",
        "0A1B2C3D-0000-4FFF-8ABC-00112233FFEE",
        "0a1b2c3d-0000-4fff-8abc-00112233ffee",
        "0a1b2c3d_0000_4fff_8abc_00112233ffee",
        "010.0.0.1",
        "10.0.0.1",
        "::",
        "FD00::1",
        "fd00:0::1",
        "::ffff:10.0.0.1",
        "10.0.0.0/8",
        "None"}) {
    CAPTURE(text);
    kube::Service s;
    s.meta.uid = text;
    s.meta.resource_version = text;
    s.cluster_ip = text;
    CHECK(unpack_service(pack(s, names), {}, names) == s);
  }
}

TEST_CASE("equal objects have equal bytes, others have not") {
  NamePool names;
  CHECK(pack(full_slice(), names) == pack(full_slice(), names));
  kube::EndpointSlice other = full_slice();
  other.endpoints[0].ready = false;
  CHECK_FALSE(pack(full_slice(), names) == pack(other, names));
  CHECK_FALSE(pack(full_service(), names) == Packed());
}

TEST_CASE(
    "a Service without our annotations pays nothing for them, an endpoint nothing for its zone") {
  NamePool names;
  kube::Service service = full_service();
  const std::size_t with = pack(service, names).bytes().size();
  service.ipvs_scheduler.clear();
  service.ipvs_weights.clear();
  const std::size_t without = pack(service, names).bytes().size();
  CHECK(with == without + (2 + 2) + (2 + 12));  // the texts, and what says that they are texts

  kube::EndpointSlice slice = full_slice();
  slice.endpoints.resize(4);
  const Packed zoned = pack(slice, names);
  slice.endpoints[3].zone.clear();
  NamePool others;
  CHECK(
      zoned.bytes().size() <= pack(slice, others).bytes().size() + 1);  // a name more in the slice
}

TEST_CASE("an endpoint takes few bytes when its node and zone are known") {
  NamePool names;
  kube::EndpointSlice s;
  for (std::uint8_t i = 0; i < 100; ++i) {
    auto& endpoint = s.endpoints.emplace_back();
    endpoint.address = net::IpAddress{net::Family::IPv4, {10, 1, 2, i}};
    endpoint.node_name = "ip-10-0-0-" + std::to_string(i) + ".eu-west-1.compute.internal";
    endpoint.zone_hints = {"eu-west-1a"};
    endpoint.zone = "eu-west-1a";
  }
  CHECK(pack(s, names).bytes().size() < std::size_t{100} * 13);
}

TEST_CASE("a name lives as long as an object that uses it") {
  NamePool names;
  Packed first = pack(full_slice(), names);
  const std::size_t used = names.size();
  Packed second = pack(full_slice(), names);
  CHECK(names.size() == used);
  release(first, names);
  CHECK(names.size() == used);
  CHECK(unpack_slice(second, kKey, names) == full_slice());
  release(second, names);
  CHECK(names.size() == 0);
  CHECK(unpack_slice(pack(full_slice(), names), kKey, names) == full_slice());
  CHECK(names.size() == used);
}

TEST_CASE("many slices that come, change and go give the same as the plain structs") {
  std::mt19937 random(7);
  const auto one_of = [&](unsigned n) { return random() % n; };
  NamePool names;
  std::vector<std::pair<kube::EndpointSlice, Packed>> held(20);
  for (auto& [slice, packed] : held) {
    packed = pack(slice, names);
  }
  for (int step = 0; step < 2000; ++step) {
    auto& [slice, packed] = held[one_of(20)];
    slice.endpoints.resize(one_of(40));
    for (auto& endpoint : slice.endpoints) {
      endpoint.address =
          net::IpAddress{net::Family::IPv4, {10, 0, static_cast<std::uint8_t>(one_of(256)), 1}};
      endpoint.node_name = "node-" + std::to_string(one_of(60));
      endpoint.zone_hints.assign(one_of(3), "zone-" + std::to_string(one_of(4)));
      endpoint.zone.assign(one_of(2), 'a');
      endpoint.ready = one_of(2) == 0;
    }
    Packed next = pack(slice, names);
    release(packed, names);
    packed = std::move(next);
    for (const auto& [plain, bytes] : held) {
      REQUIRE(unpack_slice(bytes, {}, names) == plain);
    }
  }
  for (auto& [slice, packed] : held) {
    release(packed, names);
  }
  CHECK(names.size() == 0);
}

}  // namespace
}  // namespace shunt::store
