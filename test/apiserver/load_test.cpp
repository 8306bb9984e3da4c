// The load generator: the cluster that it makes, and what happens to it. No server is needed.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "test/apiserver/rfc3339.h"
#include "test/apiserver/scenario.h"

namespace shunt::test_api {
namespace {

using namespace std::chrono_literals;

LoadSpec spec_of(const std::string& text) {
  auto spec = parse_load_spec(Json::parse(text));
  REQUIRE(spec.has_value());
  return *spec;
}

// A store with a cluster in it, without a server.
struct Cluster {
  explicit Cluster(const std::string& text) : store(10000, [](auto, const auto&, const auto&) {}) {
    const LoadSpec spec = spec_of(text);
    const auto scenario =
        make_cluster(store, ClusterObjects(*spec.cluster, spec.seed, 0, 0), false);
    while (scenario->due()) {
      scenario->step();
    }
  }
  std::vector<Json> all(const char* kind) const {
    std::vector<Json> out;
    const auto listing = store.list(resource_of_kind(kind)->index);
    for (const ObjectPtr& object : *listing.objects) {
      out.push_back(Json::parse(object->body));
    }
    return out;
  }
  std::vector<Json> slices_of(const std::string& service) const {
    std::vector<Json> out;
    for (Json& slice : all("EndpointSlice")) {
      if (slice["metadata"]["labels"]["kubernetes.io/service-name"] == service) {
        out.push_back(std::move(slice));
      }
    }
    return out;
  }
  std::vector<Json> endpoints_of(const std::string& service) const {
    std::vector<Json> out;
    for (const Json& slice : slices_of(service)) {
      out.insert(out.end(), slice["endpoints"].begin(), slice["endpoints"].end());
    }
    return out;
  }
  PodNumbers pod_numbers(std::size_t first) {
    return [first]() mutable { return ++first; };
  }

  Store store;
};

std::vector<std::string> bodies(const Cluster& cluster) {
  std::vector<std::string> out;
  for (const char* kind : {"Service", "EndpointSlice", "Node", "ServiceCIDR"}) {
    for (const Json& object : cluster.all(kind)) {
      out.push_back(object.dump());
    }
  }
  return out;
}

std::set<std::string> addresses(const std::vector<Json>& endpoints) {
  std::set<std::string> out;
  for (const Json& endpoint : endpoints) {
    out.insert(endpoint["addresses"][0].get<std::string>());
  }
  return out;
}

std::size_t count_ready(const std::vector<Json>& endpoints) {
  return static_cast<std::size_t>(std::ranges::count_if(
      endpoints, [](const Json& endpoint) { return endpoint["conditions"]["ready"] == true; }));
}

}  // namespace

TEST_CASE("a generated cluster is what was asked for") {
  const Cluster cluster(
      R"({"services":20,"endpoints":130,"namespaces":3,"nodes":9,"zones":3,"hints":true,)"
      R"("families":["IPv4","IPv6"],"node":"node-a","nodeAddresses":["10.80.0.10"]})");
  const auto services = cluster.all("Service");
  REQUIRE(services.size() == 22);
  std::set<std::string> ips;
  for (const Json& service : services) {
    for (const Json& ip : service["spec"]["clusterIPs"]) {
      CHECK(ips.insert(ip.get<std::string>()).second);
    }
  }
  CHECK(ips.contains("10.96.0.1"));
  CHECK(ips.contains("10.96.0.2"));
  CHECK(ips.contains("10.96.0.10"));
  CHECK(ips.contains("10.96.0.22"));
  CHECK(ips.contains("fd00:10:96::16"));
  // A hundred endpoints a slice, as the controller cuts them; twice, for two families.
  CHECK(cluster.slices_of("load-000007").size() == 4);
  const auto endpoints = cluster.endpoints_of("load-000007");
  CHECK(endpoints.size() == 260);
  CHECK(addresses(endpoints).size() == 260);
  CHECK(count_ready(endpoints) == 260);
  for (const Json& endpoint : endpoints) {
    CHECK(endpoint["hints"]["forZones"][0]["name"] == endpoint["zone"]);
  }
  const Json slice = cluster.slices_of("load-000007").front();
  CHECK(slice["metadata"]["ownerReferences"][0]["name"] == "load-000007");
  CHECK(slice["metadata"]["ownerReferences"][0]["uid"] == services[2 + 7 + 2]["metadata"]["uid"]);
  CHECK(slice["metadata"]["namespace"] == "load-ns-1");
  CHECK(slice["ports"].dump() == R"([{"name":"p","protocol":"TCP","port":8080}])");
  REQUIRE(cluster.all("Node").size() == 1);
  CHECK(cluster.all("Node")[0]["status"]["addresses"][0]["address"] == "10.80.0.10");
  CHECK(
      cluster.all("ServiceCIDR")[0]["spec"]["cidrs"].dump() ==
      R"(["10.96.0.0/12","fd00:10:96::/108"])");
}

TEST_CASE("the same request makes the same cluster, another seed another one") {
  const auto with_seed = [](const char* seed) {
    return bodies(
        Cluster(R"({"services":5,"endpoints":3,"node":"n","seed":)" + std::string(seed) + "}"));
  };
  CHECK(with_seed("1") == with_seed("1"));
  CHECK(with_seed("1") != with_seed("2"));
}

TEST_CASE("a Service without endpoints has an empty slice") {
  const Cluster cluster(R"({"services":1,"endpoints":0})");
  REQUIRE(cluster.slices_of("load-000000").size() == 1);
  CHECK(cluster.slices_of("load-000000")[0]["endpoints"].is_null());
}

TEST_CASE("generated objects keep every field in protobuf") {
  // The schema knows all that is generated: what it did not know would be silently left out.
  const Cluster cluster(R"({"services":1,"endpoints":2,"hints":true,"node":"n"})");
  for (const char* kind : {"Service", "EndpointSlice", "Node", "ServiceCIDR"}) {
    const TableRef table = *resource_of_kind(kind);
    const auto listing = cluster.store.list(table.index);
    for (const ObjectPtr& object : *listing.objects) {
      const std::string& bytes = object->protobuf(*table.resource->schema);
      const std::function<void(const Json&)> check = [&](const Json& value) {
        if (value.is_string()) {
          const auto text = value.get<std::string>();
          const bool is_time = parse_rfc3339(text).has_value();
          CHECK((is_time || bytes.find(text) != std::string::npos));
        }
        for (const auto& [key, inner] : value.items()) {
          if (value.is_structured()) {
            check(inner);
          }
        }
      };
      check(Json::parse(object->body));
    }
  }
}

TEST_CASE("churn flips one endpoint an event, evenly in time") {
  Cluster cluster(R"({"services":5,"endpoints":4})");
  auto made = make_churn(cluster.store, {.rate = 100, .seconds = 0.5}, 7);
  REQUIRE(made.has_value());
  std::vector<std::chrono::nanoseconds> due;
  const std::uint64_t before = cluster.store.version();
  std::size_t writes = 0;
  for (; (*made)->due(); writes += (*made)->step()) {
    due.push_back(*(*made)->due());
  }
  CHECK(due.size() == 50);
  CHECK(due[1] - due[0] == 10ms);
  CHECK(due[49] == 490ms);
  CHECK(writes == 50);
  CHECK(cluster.store.version() == before + 50);
  std::size_t unready = 0;
  std::set<std::string> triggers;
  for (const Json& slice : cluster.all("EndpointSlice")) {
    if (slice["metadata"].value("generation", 0) > 1) {
      triggers.insert(slice["metadata"]["annotations"]["endpoints.kubernetes.io/"
                                                       "last-change-trigger-time"]
                          .get<std::string>());
    }
    unready += slice["endpoints"].size() -
               count_ready({slice["endpoints"].begin(), slice["endpoints"].end()});
  }
  CHECK(unready > 0);
  CHECK(triggers.size() > 1);
  CHECK_FALSE(triggers.contains("2026-01-12T09:30:00Z"));
}

TEST_CASE("a rolling update replaces every pod and never serves from fewer") {
  Cluster cluster(R"({"services":2,"endpoints":150,"families":["IPv4","IPv6"]})");
  const auto old = addresses(cluster.endpoints_of("load-000001"));
  REQUIRE(old.size() == 300);
  auto made = make_rolling(
      cluster.store,
      {.ns = "load-ns-1", .service = "load-000001", .seconds = 20},
      3,
      cluster.pod_numbers(1000));
  REQUIRE(made.has_value());
  std::set<std::string> seen_states;
  std::chrono::nanoseconds last{-1};
  std::size_t writes = 0;
  std::size_t steps = 0;
  for (; (*made)->due(); ++steps) {
    CHECK((*made)->due()->count() % 500'000'000 == 0);
    CHECK(*(*made)->due() > last);
    last = *(*made)->due();
    writes += (*made)->step();
    const auto endpoints = cluster.endpoints_of("load-000001");
    CHECK(count_ready(endpoints) == 300);
    CHECK(addresses(endpoints).size() == endpoints.size());
    for (const Json& slice : cluster.slices_of("load-000001")) {
      CHECK(slice["endpoints"].size() <= 100);
    }
    for (const Json& endpoint : endpoints) {
      seen_states.insert(endpoint["conditions"].dump());
    }
  }
  CHECK(last <= 20s);
  CHECK(steps >= 40);
  CHECK(writes <= steps * 8);  // a few slices each half second, not one write a pod
  CHECK(
      seen_states == std::set<std::string>{
                         R"({"ready":true,"serving":true,"terminating":false})",
                         R"({"ready":false,"serving":false,"terminating":false})",
                         R"({"ready":false,"serving":true,"terminating":true})"});
  const auto fresh = addresses(cluster.endpoints_of("load-000001"));
  CHECK(fresh.size() == 300);
  CHECK(std::ranges::none_of(fresh, [&](const auto& address) { return old.contains(address); }));
  // Nobody else's slices were touched.
  CHECK(cluster.slices_of("load-000000")[0]["metadata"]["generation"] == 1);
}

TEST_CASE("a drained zone is empty, and everybody is ready elsewhere") {
  Cluster cluster(R"({"services":10,"endpoints":12,"zones":3,"nodes":30,"hints":true})");
  const auto in_zone = [&] {
    std::size_t out = 0;
    for (const Json& slice : cluster.all("EndpointSlice")) {
      for (const Json& endpoint : slice["endpoints"]) {
        out += endpoint.value("zone", "") == "zone-1" ? 1 : 0;
      }
    }
    return out;
  };
  REQUIRE(in_zone() > 10);
  auto made =
      make_drain(cluster.store, {.zone = "zone-1", .seconds = 10}, 3, cluster.pod_numbers(1000));
  REQUIRE(made.has_value());
  bool terminating = false;
  std::chrono::nanoseconds last{0};
  while ((*made)->due()) {
    CHECK(*(*made)->due() >= last);
    last = *(*made)->due();
    (*made)->step();
    terminating = terminating || cluster.endpoints_of("load-000004").size() > 12;
  }
  CHECK(last <= 10s);
  CHECK(terminating);
  CHECK(in_zone() == 0);
  for (int i = 0; i < 10; ++i) {
    const auto endpoints = cluster.endpoints_of("load-00000" + std::to_string(i));
    CHECK(endpoints.size() == 12);
    CHECK(count_ready(endpoints) == 12);
    for (const Json& endpoint : endpoints) {
      CHECK(endpoint["hints"]["forZones"][0]["name"] == endpoint["zone"]);
    }
  }
}

TEST_CASE("requests that make no sense are refused, whole") {
  for (const char* text :
       {"{}",
        "[]",
        "3",
        R"({"services":-1})",
        R"({"services":"many"})",
        R"({"services":1,"endpoint":3})",
        R"({"services":1,"families":["IPv5"]})",
        R"({"services":1,"families":[]})",
        R"({"services":1,"prefix":"a\"b"})",
        R"({"services":1,"node":"n","nodeAddresses":["here"]})",
        R"({"services":1000000,"endpoints":1000})",
        R"({"churn":{}})",
        R"({"churn":{"rate":0,"seconds":1}})",
        R"({"churn":{"rate":1,"second":1}})",
        R"({"rolling":{"service":"web"}})",
        R"({"drain":{}})"}) {
    DYNAMIC_SECTION(text) { CHECK_FALSE(parse_load_spec(Json::parse(text)).has_value()); }
  }
}

}  // namespace shunt::test_api
