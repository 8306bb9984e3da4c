#include "kube/decode_json.h"

#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>

namespace shunt::kube {
namespace {

using Texts = std::vector<std::string>;

// "lost shop/web: spec.type: expected a string, got a number"
Texts lines(const std::vector<DecodeIssue>& issues) {
  Texts out;
  for (const DecodeIssue& issue : issues) {
    out.push_back((issue.object_lost ? "lost " : "kept ") + issue.object + ": " + issue.what);
  }
  return out;
}

template <typename T>
Texts names(const std::vector<T>& objects) {
  Texts out;
  for (const T& object : objects) {
    out.push_back(to_string(object.meta.key));
  }
  return out;
}

std::string list_of(std::string_view items) {
  return fmt::format(
      R"({{"kind":"ServiceList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[{}]}})",
      items);
}

template <typename T>
T decoded(std::string_view body) {
  auto object = decode_object<T>(body);
  INFO((object ? std::string() : object.error().what));
  REQUIRE(object);
  return *object;
}

template <typename T>
std::string refusal(std::string_view body) {
  const auto object = decode_object<T>(body);
  return object ? "decoded" : object.error().what;
}

// --- Every field

constexpr char kFullService[] = R"({
  "kind": "Service", "apiVersion": "v1",
  "metadata": {
    "name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "17",
    "creationTimestamp": "2026-11-29T16:44:49Z",
    "labels": {"app": "web", "service.kubernetes.io/service-proxy-name": ""},
    "annotations": {"note": "{\"spec\":{\"type\":5}}", "kube-shunt.io/ipvs-scheduler": "mh",
                    "kube-shunt.io/ipvs-weights": "local=2, *=0"},
    "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {"f:ports": {}}}}]
  },
  "spec": {
    "ports": [
      {"name": "http", "protocol": "TCP", "port": 80, "targetPort": "web", "nodePort": 30080},
      {"name": "dns", "protocol": "UDP", "port": 53, "targetPort": 5353, "appProtocol": "x"}
    ],
    "selector": {"app": "web"},
    "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7", "fd00:10:96::7"],
    "type": "LoadBalancer", "externalIPs": ["192.0.2.1"],
    "sessionAffinity": "ClientIP",
    "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 600}},
    "loadBalancerIP": "198.51.100.1", "loadBalancerSourceRanges": ["10.0.0.0/8", "fd00::/8"],
    "externalTrafficPolicy": "Local", "healthCheckNodePort": 30099,
    "publishNotReadyAddresses": true, "ipFamilies": ["IPv4", "IPv6"],
    "ipFamilyPolicy": "RequireDualStack", "internalTrafficPolicy": "Cluster"
  },
  "status": {"loadBalancer": {"ingress": [
    {"ip": "198.51.100.1", "ipMode": "VIP", "ports": [{"port": 80, "protocol": "TCP"}]},
    {"hostname": "lb.example"}
  ]}, "conditions": []}
})";

TEST_CASE("every field of a Service lands in its member") {
  const Service want{
      .meta = {{"shop", "web"}, "u-1", "17", 1'795'970'689},
      .has_proxy_name_label = true,
      .type = "LoadBalancer",
      .cluster_ip = "10.96.0.7",
      .cluster_ips = {"10.96.0.7", "fd00:10:96::7"},
      .ip_families = {"IPv4", "IPv6"},
      .external_ips = {"192.0.2.1"},
      .load_balancer_source_ranges = {"10.0.0.0/8", "fd00::/8"},
      .session_affinity = "ClientIP",
      .client_ip_timeout_seconds = 600,
      .external_traffic_policy = "Local",
      .internal_traffic_policy = "Cluster",
      .health_check_node_port = 30099,
      .ports = {{"http", "TCP", 80, 30080}, {"dns", "UDP", 53, 0}},
      .ingress = {{"198.51.100.1", "VIP"}, {"", std::nullopt}},
      .ipvs_scheduler = "mh",
      .ipvs_weights = "local=2, *=0"};
  CHECK(decoded<Service>(kFullService) == want);
}

constexpr char kFullSlice[] = R"({
  "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
  "metadata": {
    "name": "web-1", "namespace": "shop", "uid": "u-2", "resourceVersion": "18",
    "creationTimestamp": "2026-11-29T16:44:49Z",
    "labels": {"kubernetes.io/service-name": "web", "service.kubernetes.io/headless": ""},
    "annotations": {
      "endpoints.kubernetes.io/last-change-trigger-time": "2026-11-29T16:44:49.25Z"}
  },
  "addressType": "IPv4",
  "endpoints": [
    {"addresses": ["10.0.0.1", "10.0.0.2"],
     "conditions": {"ready": false, "serving": true, "terminating": true},
     "hostname": "h", "targetRef": {"kind": "Pod", "name": "p"}, "nodeName": "node1",
     "zone": "zone-x", "deprecatedTopology": {"a": "b"},
     "hints": {"forZones": [{"name": "zone-a"}, {"name": "zone-b"}],
               "forNodes": [{"name": "node1"}]}},
    {"addresses": ["10.0.0.3"], "conditions": {"serving": false}}
  ],
  "ports": [{"name": "http", "protocol": "TCP", "port": 8080, "appProtocol": "x"},
            {"name": "", "port": 1}, {}]
})";

TEST_CASE("every field of an EndpointSlice lands in its member") {
  const EndpointSlice want{
      .meta = {{"shop", "web-1"}, "u-2", "18", 1'795'970'689},
      .service_name = "web",
      .has_headless_label = true,
      .address_type = "IPv4",
      .trigger_time_ns = 1'795'970'689'250'000'000,
      .endpoints =
          {{net::parse_ip("10.0.0.1"),
            false,
            true,
            true,
            "node1",
            {"zone-a", "zone-b"},
            {"node1"},
            "zone-x"},
           {net::parse_ip("10.0.0.3"), true, false, false, "", {}, {}, ""}},
      .ports = {{"http", "TCP", 8080}, {"", "", 1}, {std::nullopt, "", 0}}};
  CHECK(decoded<EndpointSlice>(kFullSlice) == want);
}

constexpr char kFullNode[] = R"({
  "kind": "Node", "apiVersion": "v1",
  "metadata": {
    "name": "node1", "uid": "u-3", "resourceVersion": "19",
    "creationTimestamp": "2026-11-29T16:44:50Z", "deletionTimestamp": "2026-11-29T17:00:00Z",
    "labels": {"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "zone-a"}
  },
  "spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24", "fd01::/64"],
           "taints": [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1",
                       "effect": "NoSchedule"}]},
  "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"},
                           {"type": "Hostname", "address": "node1"}],
             "capacity": {"cpu": "4"}, "images": [{"names": ["a"], "sizeBytes": 99999999999}]}
})";

TEST_CASE("every field of a Node and of a ServiceCIDR lands in its member") {
  const Node node{
      .meta = {{"", "node1"}, "u-3", "19", 1'795'970'690},
      .zone = "zone-a",
      .deleting = true,
      .pod_cidrs = {"10.1.0.0/24", "fd01::/64"},
      .taint_keys = {"ToBeDeletedByClusterAutoscaler"},
      .addresses = {{"InternalIP", "192.0.2.1"}, {"Hostname", "node1"}}};
  CHECK(decoded<Node>(kFullNode) == node);

  const ServiceCidr cidr{.meta = {{"", "main"}, "", "3", 0}, .cidrs = {"10.96.0.0/12"}};
  CHECK(
      decoded<ServiceCidr>(
          R"({"kind":"ServiceCIDR","metadata":{"name":"main","resourceVersion":"3"},
              "spec":{"cidrs":["10.96.0.0/12"]},"status":{"conditions":[]}})") == cidr);
}

TEST_CASE("annotations are ours alone, and only their beginning is kept") {
  const Service got = decoded<Service>(fmt::format(
      R"({{"metadata":{{"annotations":{{"kubectl.kubernetes.io/last-applied-configuration":"{{}}",
          "kube-shunt.io/ipvs-scheduler":"{}","kube-shunt.io/ipvs-weights":"{}"}}}}}})",
      std::string(10'000, 's'),
      std::string(100'000, 'w')));
  CHECK(got.ipvs_scheduler == std::string(kMaxIpvsScheduler + 1, 's'));
  CHECK(got.ipvs_weights == std::string(kMaxIpvsWeights + 1, 'w'));
  CHECK(
      refusal<Service>(R"({"metadata":{"annotations":{"kube-shunt.io/ipvs-weights":3}}})") ==
      "object: metadata.annotations.kube-shunt.io/ipvs-weights: expected a string, got a number");
}

// --- Absent, null, unknown

TEST_CASE("null is as good as absent, everywhere") {
  const EndpointSlice nulls = decoded<EndpointSlice>(R"({
    "kind": null, "metadata": {"name": null, "namespace": null, "uid": null,
      "resourceVersion": null, "creationTimestamp": null,
      "labels": {"kubernetes.io/service-name": null, "service.kubernetes.io/headless": null},
      "annotations": {"endpoints.kubernetes.io/last-change-trigger-time": null}},
    "addressType": null,
    "endpoints": [{"addresses": null, "conditions": {"ready": null, "serving": null,
      "terminating": null}, "nodeName": null, "zone": null, "hints": {"forZones": null, "forNodes": null}},
      {"conditions": null, "hints": null}],
    "ports": [{"name": null, "protocol": null, "port": null}]})");
  EndpointSlice want;
  want.endpoints.resize(2);
  want.ports.resize(1);
  CHECK(nulls == want);
  CHECK(want.endpoints[0].ready);

  CHECK(
      decoded<EndpointSlice>(
          R"({"metadata":{"labels":null,"annotations":null},"endpoints":null,"ports":null})") ==
      EndpointSlice{});
  CHECK(decoded<Service>(R"({"metadata":null,"spec":null,"status":null})") == Service{});
  CHECK(
      decoded<Service>(
          R"({"spec":{"ports":null,"clusterIP":null,"clusterIPs":null,"healthCheckNodePort":null,
              "sessionAffinityConfig":{"clientIP":{"timeoutSeconds":null}},
              "internalTrafficPolicy":null},"status":{"loadBalancer":{"ingress":null}}})") ==
      Service{});
  CHECK(
      decoded<Node>(
          R"({"metadata":{"deletionTimestamp":null,"labels":{"topology.kubernetes.io/zone":null}},
              "spec":{"podCIDRs":null,"taints":null},"status":{"addresses":null}})") == Node{});
}

TEST_CASE("null in an array keeps its place, for parallel arrays") {
  const Service service = decoded<Service>(
      R"({"spec":{"clusterIPs":["10.0.0.1",null,"fd00::1"],"ports":[null,{"port":1}]}})");
  CHECK(service.cluster_ips == Texts{"10.0.0.1", "", "fd00::1"});
  CHECK(service.ports == std::vector<ServicePortSpec>{{}, {"", "", 1, 0}});
}

TEST_CASE("an empty object is an object, and absent differs from empty where the API says so") {
  CHECK(decoded<Service>("{}") == Service{});
  const Service service =
      decoded<Service>(R"({"spec":{"internalTrafficPolicy":"","sessionAffinityConfig":{}},
                           "status":{"loadBalancer":{"ingress":[{"ipMode":""}]}}})");
  CHECK(service.internal_traffic_policy == "");
  CHECK(service.client_ip_timeout_seconds == std::nullopt);
  CHECK(service.ingress[0].ip_mode == "");
  CHECK(decoded<Node>(R"({"metadata":{"labels":{"topology.kubernetes.io/zone":""}}})").zone == "");
}

TEST_CASE("unknown fields are skipped with all they hold, known names inside them included") {
  const Service want = decoded<Service>(kFullService);
  std::string noisy = kFullService;
  const std::string noise =
      R"("x": {"spec": {"type": 5, "ports": "no"}, "metadata": [1, [2, {"name": []}]]}, )"
      R"("big": 123456789012345678901234567890, "y": -1.5e300, "z": [[], {}, null, true, "\u0000"], )";
  for (const std::string_view before :
       {"\"kind\"", "\"name\": \"web\"", "\"protocol\": \"UDP\"", "\"clusterIP\"", "\"ipMode\""}) {
    noisy.insert(noisy.find(before), noise);
  }
  CHECK(decoded<Service>(noisy) == want);
}

TEST_CASE("enumeration values that we do not know survive") {
  const Service service = decoded<Service>(
      R"({"spec":{"type":"Quantum","sessionAffinity":"Cookie","externalTrafficPolicy":"Near",
          "internalTrafficPolicy":"Rack","ipFamilies":["IPv8"],"ports":[{"protocol":"QUIC"}]}})");
  CHECK(service.type == "Quantum");
  CHECK(service.session_affinity == "Cookie");
  CHECK(service.external_traffic_policy == "Near");
  CHECK(service.internal_traffic_policy == "Rack");
  CHECK(service.ip_families == Texts{"IPv8"});
  CHECK(service.ports[0].protocol == "QUIC");
  CHECK(decoded<EndpointSlice>(R"({"addressType":"IPv8"})").address_type == "IPv8");
}

// --- Strings, times, duplicates

TEST_CASE("strings and keys are unescaped, and may hold any UTF-8") {
  const Service service = decoded<Service>(
      R"({"metadata":{"n\u0061me":"a\"\\\/\b\f\n\r\t","namespace":"\u00e4\ud83d\ude00"},)"
      "\"spec\":{\"type\":\"\xe2\x82\xac\",\"clusterIP\":\"a\\u0000b\"}}");
  CHECK(service.meta.key.name == "a\"\\/\b\f\n\r\t");
  CHECK(service.meta.key.name_space == "\xc3\xa4\xf0\x9f\x98\x80");
  CHECK(service.type == "\xe2\x82\xac");
  CHECK(service.cluster_ip == std::string("a\0b", 3));
}

TEST_CASE("times that are no times count as absent") {
  const auto slice = [](const char* creation, const char* trigger) {
    return decoded<EndpointSlice>(fmt::format(
        R"({{"metadata":{{"creationTimestamp":"{}","annotations":{{
            "endpoints.kubernetes.io/last-change-trigger-time":"{}"}}}}}})",
        creation,
        trigger));
  };
  CHECK(slice("1970-01-01T00:01:00Z", "").meta.creation_seconds == 60);
  CHECK(slice("yesterday", "").meta.creation_seconds == 0);
  CHECK(slice("", "1970-01-01T01:00:00.000000007+01:00").trigger_time_ns == 7);
  CHECK(slice("", "1970-01-01T00:00:01Z").trigger_time_ns == 1'000'000'000);
  CHECK(slice("", "9999-01-01T00:00:01Z").trigger_time_ns == 0);
  CHECK(slice("", "soon").trigger_time_ns == 0);
}

TEST_CASE("of equal keys the last wins, and objects are merged") {
  const Service service = decoded<Service>(
      R"({"metadata":{"name":"a","name":"b"},
          "spec":{"type":"X","clusterIPs":["1","2"],"ports":[{"port":1},{"port":2}]},
          "spec":{"clusterIPs":["3"],"ports":[{"port":3,"port":4}],"ports":[{"port":5}]}})");
  CHECK(service.meta.key.name == "b");
  CHECK(service.type == "X");
  CHECK(service.cluster_ips == Texts{"3"});
  CHECK(service.ports == std::vector<ServicePortSpec>{{"", "", 5, 0}});

  const EndpointSlice slice = decoded<EndpointSlice>(
      R"({"endpoints":[{"addresses":["10.0.0.1"],"addresses":[]},
                       {"addresses":[],"addresses":["10.0.0.2"]}]})");
  CHECK(slice.endpoints[0].address == std::nullopt);
  CHECK(slice.endpoints[1].address == net::parse_ip("10.0.0.2"));
}

// --- Fields that are not what the API says

TEST_CASE("a field of the wrong type loses the object and says where") {
  struct Case {
    const char* object;
    const char* what;
  };
  const Case services[] = {
      {R"("spec":{"type":5})", "spec.type: expected a string, got a number"},
      {R"("spec":{"type":1.5})", "spec.type: expected a string, got a number"},
      {R"("spec":{"type":true})", "spec.type: expected a string, got a boolean"},
      {R"("spec":{"type":{"a":[1]}})", "spec.type: expected a string, got an object"},
      {R"("spec":{"type":[[],{}]})", "spec.type: expected a string, got an array"},
      {R"("spec":{"internalTrafficPolicy":0})",
       "spec.internalTrafficPolicy: expected a string, got a number"},
      {R"("spec":{"ports":[{"port":1},{"port":"80"}]})",
       "spec.ports[1].port: expected a number, got a string"},
      {R"("spec":{"ports":[{"port":80.0}]})",
       "spec.ports[0].port: expected a 32-bit integer, got 80.0"},
      {R"("spec":{"ports":[{"port":2147483648}]})",
       "spec.ports[0].port: expected a 32-bit integer, got 2147483648"},
      {R"("spec":{"ports":[{"port":-2147483649}]})",
       "spec.ports[0].port: expected a 32-bit integer, got -2147483649"},
      {R"("spec":{"ports":[{"port":18446744073709551615}]})",
       "spec.ports[0].port: expected a 32-bit integer, got 18446744073709551615"},
      {R"("spec":{"ports":[{"port":18446744073709551616}]})",
       "spec.ports[0].port: expected a 32-bit integer, got 18446744073709551616"},
      {R"("spec":{"ports":{}})", "spec.ports: expected an array, got an object"},
      {R"("spec":{"ports":[80]})", "spec.ports[0]: expected an object, got a number"},
      {R"("spec":{"ports":"80"})", "spec.ports: expected an array, got a string"},
      {R"("spec":{"clusterIPs":["a",5]})", "spec.clusterIPs[1]: expected a string, got a number"},
      {R"("spec":{"sessionAffinityConfig":{"clientIP":{"timeoutSeconds":"1"}}})",
       "spec.sessionAffinityConfig.clientIP.timeoutSeconds: expected a number, got a string"},
      {R"("spec":[])", "spec: expected an object, got an array"},
      {R"("status":{"loadBalancer":{"ingress":[{},{"ip":5}]}})",
       "status.loadBalancer.ingress[1].ip: expected a string, got a number"},
      {R"("kind":"Pod")", "kind: \"Pod\" is not the kind expected here"},
      {R"("spec":{"type":5,"clusterIP":6},"status":7)",
       "spec.type: expected a string, got a number"},
  };
  for (const Case& c : services) {
    DYNAMIC_SECTION("Service " << c.object) {
      // The bad field stands before the name, and good objects stand around.
      const auto list = decode_list<Service>(list_of(fmt::format(
          R"({{"metadata":{{"name":"before"}}}},
              {{{},"metadata":{{"name":"web","namespace":"shop"}}}},
              {{"metadata":{{"name":"after"}}}})",
          c.object)));
      REQUIRE(list);
      CHECK(names(list->items) == Texts{"before", "after"});
      CHECK(lines(list->issues) == Texts{std::string("lost shop/web: ") + c.what});
    }
  }
  const Case slices[] = {
      {R"("addressType":4)", "addressType: expected a string, got a number"},
      {R"("metadata":{"labels":{"kubernetes.io/service-name":true}})",
       "metadata.labels.kubernetes.io/service-name: expected a string, got a boolean"},
      {R"("metadata":{"labels":[]})", "metadata.labels: expected an object, got an array"},
      {R"("metadata":{"creationTimestamp":0})",
       "metadata.creationTimestamp: expected a string, got a number"},
      {R"("endpoints":[{"conditions":{"ready":"true"}}])",
       "endpoints[0].conditions.ready: expected a boolean, got a string"},
      {R"("endpoints":[{"addresses":"10.0.0.1"}])",
       "endpoints[0].addresses: expected an array, got a string"},
      {R"("endpoints":[{"addresses":["10.0.0.1",2]}])",
       "endpoints[0].addresses[1]: expected a string, got a number"},
      {R"("endpoints":[{},{"hints":{"forZones":[{"name":1}]}}])",
       "endpoints[1].hints.forZones[0].name: expected a string, got a number"},
      {R"("ports":[{"port":null},{"port":"x"}])", "ports[1].port: expected a number, got a string"},
      {R"("ports":[{"name":1}])", "ports[0].name: expected a string, got a number"},
  };
  for (const Case& c : slices) {
    DYNAMIC_SECTION("EndpointSlice " << c.object) {
      CHECK(
          refusal<EndpointSlice>(
              fmt::format(R"({{{},"metadata":{{"name":"s","namespace":"n"}}}})", c.object)) ==
          std::string("n/s: ") + c.what);
    }
  }
  CHECK(
      refusal<Node>(R"({"spec":{"taints":[{"key":{}}]}})") ==
      "object: spec.taints[0].key: expected a string, got an object");
  CHECK(
      refusal<Node>(R"({"metadata":{"name":"n","deletionTimestamp":false}})") ==
      "n: metadata.deletionTimestamp: expected a string, got a boolean");
  CHECK(
      refusal<ServiceCidr>(R"({"spec":{"cidrs":{}}})") ==
      "object: spec.cidrs: expected an array, got an object");
}

TEST_CASE("numbers at the edge of 32 bits are numbers") {
  const Service service = decoded<Service>(
      R"({"spec":{"ports":[{"port":2147483647,"nodePort":-2147483648},{"port":-0}]}})");
  CHECK(service.ports[0].port == 2147483647);
  CHECK(service.ports[0].node_port == -2147483647 - 1);
  CHECK(service.ports[1].port == 0);
}

TEST_CASE("an object without a name is called by its place") {
  const auto list = decode_list<Service>(
      list_of(R"({"metadata":{"name":"a"}},{"spec":1},{"metadata":{"name":5,"namespace":"x"}},
                 7,null,[{}],{"metadata":{"name":"b"}})"));
  REQUIRE(list);
  CHECK(names(list->items) == Texts{"a", "b"});
  CHECK(
      lines(list->issues) == Texts{
                                 "lost items[1]: spec: expected an object, got a number",
                                 "lost items[2]: metadata.name: expected a string, got a number",
                                 "lost items[3]: expected an object, got a number",
                                 "lost items[4]: expected an object, got null",
                                 "lost items[5]: expected an object, got an array",
                             });
}

TEST_CASE("an endpoint address that is no IP address loses only that address") {
  const char* const endpoints =
      R"("endpoints":[{"addresses":["10.0.0.1"]},{"addresses":["h.example","10.0.0.2"],
         "nodeName":"n"},{"addresses":[""]},{"addresses":[]},{"addresses":[null]}])";
  for (const bool type_first : {true, false}) {
    for (const std::string type : {"IPv4", "IPv6", "FQDN", ""}) {
      DYNAMIC_SECTION("addressType \"" << type << "\"" << (type_first ? " first" : " last")) {
        const std::string address_type = fmt::format(R"("addressType":"{}")", type);
        const auto body = fmt::format(
            R"({{"metadata":{{"name":"s","namespace":"n"}},{},{}}})",
            type_first ? address_type : endpoints,
            type_first ? endpoints : address_type);
        std::vector<DecodeIssue> issues;
        const auto slice = decode_object<EndpointSlice>(body, &issues);
        REQUIRE(slice);
        REQUIRE(slice->endpoints.size() == 5);
        CHECK(slice->endpoints[0].address == net::parse_ip("10.0.0.1"));
        for (std::size_t i = 1; i < 5; ++i) {
          CHECK(slice->endpoints[i].address == std::nullopt);
        }
        CHECK(slice->endpoints[1].node_name == "n");
        const Texts complaints = {
            "kept n/s: endpoints[1].addresses[0]: not an IP address: \"h.example\"",
            "kept n/s: endpoints[2].addresses[0]: not an IP address: \"\""};
        CHECK(lines(issues) == (type.starts_with("IP") ? complaints : Texts{}));
      }
    }
  }
}

TEST_CASE("values that mean nothing are named, and stay as they came") {
  std::vector<DecodeIssue> issues;
  const auto node = decode_object<Node>(
      R"({"metadata":{"name":"n"},"spec":{"podCIDRs":["10.0.0.0/24","gopher"]},
          "status":{"addresses":[{"type":"InternalIP","address":"gopher"},
                                 {"type":"Hostname","address":"gopher"}]}})",
      &issues);
  REQUIRE(node);
  CHECK(node->pod_cidrs.size() == 2);
  REQUIRE(decode_object<ServiceCidr>(
      R"({"metadata":{"name":"c"},"spec":{"cidrs":["10.0.0.0/8","10.0.0.0/99"]}})", &issues));
  REQUIRE(decode_object<EndpointSlice>(
      R"({"metadata":{"name":"s","namespace":"n"},"addressType":"IPv8",
          "endpoints":[{"addresses":["h.example"]}]})",
      &issues));
  CHECK(
      lines(issues) == Texts{
                           "kept n: status.addresses[0]: not an IP address: \"gopher\"",
                           "kept n: spec.podCIDRs[1]: not a range of addresses: \"gopher\"",
                           "kept c: spec.cidrs[1]: not a range of addresses: \"10.0.0.0/99\"",
                           "kept n/s: addressType: unknown: \"IPv8\""});
  const auto list = decode_list<ServiceCidr>(
      R"({"kind":"ServiceCIDRList","items":[{"metadata":{"name":"c"},"spec":{"cidrs":[""]}}]})");
  REQUIRE(list);
  CHECK(list->items.size() == 1);
  CHECK(lines(list->issues) == Texts{"kept c: spec.cidrs[0]: not a range of addresses: \"\""});
}

TEST_CASE("foreign text in messages is short and printable") {
  std::vector<DecodeIssue> issues;
  const std::string junk = "\xc3\xa4\\n" + std::string(100'000, 'x');
  REQUIRE(decode_object<EndpointSlice>(
      R"({"addressType":"IPv4","endpoints":[{"addresses":[")" + junk + R"("]}]})", &issues));
  REQUIRE(issues.size() == 1);
  CHECK(
      issues[0].what ==
      "endpoints[0].addresses[0]: not an IP address: \"???" + std::string(61, 'x') + "...\"");
}

// --- Whole bodies

TEST_CASE("a list body") {
  const auto list = decode_list<Service>(
      R"({"kind":"ServiceList","apiVersion":"v1",
          "metadata":{"resourceVersion":"7","continue":"abc","remainingItemCount":3},
          "items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]})");
  REQUIRE(list);
  CHECK(list->meta.resource_version == "7");
  CHECK(list->meta.continue_token == "abc");
  CHECK(names(list->items) == Texts{"a", "b"});
  CHECK(list->issues.empty());
}

TEST_CASE("a list may be empty, and its parts may come in any order") {
  for (const char* body :
       {R"({"kind":"ServiceList","metadata":{"resourceVersion":"7"},"items":[]})",
        R"({"kind":"ServiceList","metadata":{"resourceVersion":"7"},"items":null})",
        R"({"kind":"List","metadata":{"resourceVersion":"7"}})",
        R"({"items":[],"metadata":{"resourceVersion":"7"},"kind":"ServiceList"})"}) {
    const auto list = decode_list<Service>(body);
    REQUIRE(list);
    CHECK(list->items.empty());
    CHECK(list->meta.resource_version == "7");
  }
}

TEST_CASE("what is no list is refused as a whole") {
  struct Case {
    const char* name;
    std::string body;
    const char* error;
  };
  const Case cases[] = {
      {"empty", "", "list: not JSON"},
      {"blank", " \n", "list: not JSON"},
      {"byte order mark", "\xef\xbb\xbf" + list_of(""), "list: not JSON: a byte order mark"},
      {"plain text", "Unauthorized", "list: not JSON"},
      {"truncated", list_of(R"({"metadata":{"name":"a"}})").substr(0, 90), "list: not JSON"},
      {"trailing text", list_of("") + "{}", "list: not JSON"},
      {"trailing comma", list_of("{},"), "list: not JSON"},
      {"comment", list_of("/* */"), "list: not JSON"},
      {"NUL at the end", list_of("") + std::string(1, '\0'), "list: not JSON: a NUL byte"},
      {"an array", "[]", "not a list: kind \"\""},
      {"a number", "5", "not a list: kind \"\""},
      {"null", "null", "not a list: kind \"\""},
      {"no kind", R"({"items":[]})", "not a list: kind \"\""},
      {"one object", kFullService, "not a list: kind \"Service\""},
      {"kind of the wrong type", R"({"kind":5,"items":[]})", "not a list: kind \"\""},
      {"items of the wrong type",
       R"({"kind":"ServiceList","items":{}})",
       "not a list: items: expected an array, got an object"},
      {"version of the wrong type",
       R"({"kind":"ServiceList","metadata":{"resourceVersion":7},"items":[{}]})",
       "not a list: metadata.resourceVersion: expected a string, got a number"},
      {"a Status",
       R"({"kind":"Status","metadata":{},"message":"no","reason":"Expired","code":410})",
       "a Status instead of a list: Expired: no"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const auto list = decode_list<Service>(c.body);
      REQUIRE_FALSE(list);
      CHECK(list.error().code == Errc::Invalid);
      CHECK(list.error().what.substr(0, std::string_view(c.error).size()) == c.error);
    }
  }
}

TEST_CASE("a list item that is no JSON loses only itself, as its brackets tell it apart") {
  struct Case {
    const char* name;
    const char* item;
  };
  for (const Case& c : {
           Case{"bad escape", R"({"metadata":{"name":"bad"},"a":"\x"})"},
           Case{"lone surrogate", R"({"metadata":{"name":"bad"},"a":"\ud800"})"},
           Case{"invalid UTF-8", "{\"metadata\":{\"name\":\"bad\"},\"a\":\"\xff\"}"},
           Case{"control character", "{\"metadata\":{\"name\":\"bad\"},\"a\":\"\n\"}"},
           Case{"leading zero", R"({"metadata":{"name":"bad"},"a":01})"},
           Case{"NaN", R"({"metadata":{"name":"bad"},"a":NaN})"},
           Case{"a number no double can hold", R"({"metadata":{"name":"bad"},"a":1e999})"},
           Case{"brackets that do not match", R"({"metadata":{"name":"bad"},"a":[})"},
           Case{"no value", R"({"metadata":{"name":"bad"},"a":})"},
       }) {
    DYNAMIC_SECTION(c.name) {
      const auto list = decode_list<Service>(list_of(
          std::string(R"({"metadata":{"name":"a"}},)") + c.item + R"(,{"metadata":{"name":"b"}})"));
      REQUIRE(list);
      CHECK(names(list->items) == Texts{"a", "b"});
      REQUIRE(list->issues.size() == 1);
      CHECK(list->issues[0].object == "bad");
      CHECK(list->issues[0].object_lost);
      CHECK(list->issues[0].what.starts_with("not JSON: "));
    }
  }
}

TEST_CASE("every truncation of an object is refused") {
  const std::string_view whole = kFullSlice;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    REQUIRE_FALSE(decode_object<EndpointSlice>(whole.substr(0, size)));
  }
}

TEST_CASE("nesting is bounded, whether the field is known or not") {
  const auto nested = [](const char* key, std::size_t depth) {
    return fmt::format(R"({{"{}":{}{}}})", key, std::string(depth, '['), std::string(depth, ']'));
  };
  CHECK(decode_object<Service>(nested("x", 199)));
  CHECK(refusal<Service>(nested("x", 200)) == "JSON nested deeper than 200");
  CHECK(refusal<Service>(nested("spec", 1'000'000)) == "JSON nested deeper than 200");
  CHECK(refusal<Service>(std::string(500'000, '[')) == "JSON nested deeper than 200");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) {
    objects += R"({"spec":)";
  }
  CHECK(refusal<Service>(objects) == "JSON nested deeper than 200");
}

TEST_CASE("large bodies are no special case") {
  std::string items;
  for (int i = 0; i < 20'000; ++i) {
    items += fmt::format(R"({}{{"metadata":{{"name":"s{}"}}}})", i == 0 ? "" : ",", i);
  }
  const auto list = decode_list<Service>(list_of(items));
  REQUIRE(list);
  CHECK(list->items.size() == 20'000);
  CHECK(list->items.back().meta.key.name == "s19999");

  const std::string long_name(std::size_t{1} << 20, 'n');
  CHECK(
      decoded<Service>(R"({"metadata":{"name":")" + long_name + R"("}})").meta.key.name ==
      long_name);
}

// --- Status

TEST_CASE("a Status body") {
  const auto status = decode_status(
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"m",
          "reason":"Timeout","code":504,"details":{"name":"n","retryAfterSeconds":1,
          "causes":[{"reason":"ResourceVersionTooLarge","message":"x","field":"y"},{}]}})");
  REQUIRE(status);
  CHECK(status->code == 504);
  CHECK(status->reason == "Timeout");
  CHECK(status->message == "m");
  CHECK(status->cause_reasons == Texts{"ResourceVersionTooLarge", ""});
  CHECK(status->retry_after_seconds == 1);
}

TEST_CASE("half a Status is a Status; what is none is refused") {
  const auto half = decode_status(
      R"({"kind":"Status","code":"410","reason":"Gone","details":{"retryAfterSeconds":"soon"}})");
  REQUIRE(half);
  CHECK(half->code == 0);
  CHECK(half->reason == "Gone");
  CHECK(half->retry_after_seconds == std::nullopt);
  CHECK(decode_status(R"({"kind":"Status","details":null})"));
  for (const char* body :
       {"", "no", "[]", "{}", "{\"kind\":\"Service\"}", "{\"kind\":\"Status\""}) {
    CHECK_FALSE(decode_status(body));
  }
}

// --- Watch events

TEST_CASE("events of objects") {
  struct Case {
    const char* name;
    EventType type;
  };
  const Case cases[] = {
      {"ADDED", EventType::Added},
      {"MODIFIED", EventType::Modified},
      {"DELETED", EventType::Deleted}};
  for (const Case& c : cases) {
    for (const bool type_first : {true, false}) {
      DYNAMIC_SECTION(c.name << (type_first ? "" : ", type after object")) {
        const std::string frame =
            type_first ? fmt::format(R"({{"type":"{}","object":{}}})", c.name, kFullService)
                       : fmt::format(R"({{"object":{},"type":"{}"}})", kFullService, c.name);
        const auto event = decode_watch_event<Service>(frame);
        REQUIRE(event);
        CHECK(event->type == c.type);
        CHECK(event->object == decoded<Service>(kFullService));
        CHECK(event->meta == event->object->meta);
        CHECK(event->issues.empty());
      }
    }
  }
}

TEST_CASE("an event whose object is bad keeps its metadata") {
  for (const char* frame :
       {R"({"type":"MODIFIED","object":{"spec":{"type":1},"metadata":{"name":"web",
            "namespace":"shop","resourceVersion":"12"}}})",
        R"({"object":{"spec":{"type":1},"metadata":{"name":"web","namespace":"shop",
            "resourceVersion":"12"}},"type":"MODIFIED"})"}) {
    const auto event = decode_watch_event<Service>(frame);
    REQUIRE(event);
    CHECK(event->type == EventType::Modified);
    CHECK(event->object == std::nullopt);
    CHECK(event->meta.key == ObjectKey{"shop", "web"});
    CHECK(event->meta.resource_version == "12");
    CHECK(
        lines(event->issues) == Texts{"lost shop/web: spec.type: expected a string, got a number"});
  }
}

TEST_CASE("an event with an object of another kind has no object") {
  const auto event = decode_watch_event<Service>(
      R"({"type":"ADDED","object":{"kind":"Node","metadata":{"name":"n","resourceVersion":"4"}}})");
  REQUIRE(event);
  CHECK(event->object == std::nullopt);
  CHECK(event->meta.resource_version == "4");
  CHECK(lines(event->issues) == Texts{"lost n: kind: \"Node\" is not the kind expected here"});
}

TEST_CASE("an endpoint that is bad leaves the event its object") {
  const auto event = decode_watch_event<EndpointSlice>(
      R"({"type":"ADDED","object":{"metadata":{"name":"s"},"endpoints":[{"addresses":["x"]}],
          "addressType":"IPv6"}})");
  REQUIRE(event);
  REQUIRE(event->object);
  CHECK(
      lines(event->issues) == Texts{"kept s: endpoints[0].addresses[0]: not an IP address: \"x\""});
}

TEST_CASE("bookmarks") {
  const auto bookmark = [](const char* annotations, bool type_first) {
    const std::string object = fmt::format(
        R"({{"kind":"Service","apiVersion":"v1","metadata":{{"resourceVersion":"804",
            "creationTimestamp":null,"annotations":{}}},"spec":{{}},"status":{{"loadBalancer":{{}}}}}})",
        annotations);
    const auto event = decode_watch_event<Service>(
        type_first ? R"({"type":"BOOKMARK","object":)" + object + "}"
                   : R"({"object":)" + object + R"(,"type":"BOOKMARK"})");
    REQUIRE(event);
    CHECK(event->type == EventType::Bookmark);
    CHECK(event->object == std::nullopt);
    CHECK(event->meta.resource_version == "804");
    CHECK(event->issues.empty());
    return event->initial_events_end;
  };
  for (const bool type_first : {true, false}) {
    CHECK(bookmark(R"({"k8s.io/initial-events-end":"true"})", type_first));
    CHECK_FALSE(bookmark(R"({"k8s.io/initial-events-end":"false"})", type_first));
    CHECK_FALSE(bookmark("{}", type_first));
    CHECK_FALSE(bookmark("null", type_first));
  }
  const auto bad = decode_watch_event<Node>(
      R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":8}}})");
  REQUIRE(bad);
  CHECK(bad->meta.resource_version.empty());
  CHECK(
      lines(bad->issues) ==
      Texts{"lost object: metadata.resourceVersion: expected a string, got a number"});
}

TEST_CASE("error events carry a Status, whose status field is no Service status") {
  const std::string object =
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
          "message":"too old","reason":"Expired","code":410})";
  for (const std::string& frame :
       {R"({"type":"ERROR","object":)" + object + "}",
        R"({"object":)" + object + R"(,"type":"ERROR"})"}) {
    const auto event = decode_watch_event<Service>(frame);
    REQUIRE(event);
    CHECK(event->type == EventType::Error);
    CHECK(event->status.code == 410);
    CHECK(event->status.reason == "Expired");
    CHECK(event->status.message == "too old");
    CHECK(event->object == std::nullopt);
    CHECK(event->issues.empty());
  }
}

TEST_CASE("of two types or two objects in one event the last wins") {
  const auto type = decode_watch_event<Service>(
      R"({"type":"ADDED","object":{"code":410,"status":"Failure"},"type":"ERROR"})");
  REQUIRE(type);
  CHECK(type->type == EventType::Error);
  CHECK(type->status.code == 410);
  CHECK(type->object == std::nullopt);
  CHECK(type->issues.empty());

  const auto object = decode_watch_event<Service>(
      R"({"type":"ADDED","object":{"spec":1},"object":{"metadata":{"name":"b"}}})");
  REQUIRE(object);
  REQUIRE(object->object);
  CHECK(object->object->meta.key.name == "b");
  CHECK(object->issues.empty());
}

TEST_CASE("objects of an event that are none") {
  for (const char* object : {"null", "5", "\"x\"", "[]"}) {
    const auto event =
        decode_watch_event<Service>(fmt::format(R"({{"type":"ADDED","object":{}}})", object));
    REQUIRE(event);
    CHECK(event->object == std::nullopt);
    CHECK(event->issues.size() == 1);
  }
}

TEST_CASE("what is no event is refused") {
  struct Case {
    const char* frame;
    const char* error;
  };
  const Case cases[] = {
      {"", "watch event: not JSON"},
      {R"({"type":"ADDED","object":{})", "watch event: not JSON"},
      {R"({"type":"ADDED","object":{}}})", "watch event: not JSON"},
      {R"({"type":"SYNC","object":{}})", "watch event of unknown type \"SYNC\""},
      {R"({"type":"added","object":{}})", "watch event of unknown type \"added\""},
      {R"({"type":null,"object":{}})", "watch event of unknown type \"\""},
      {R"({"object":{}})", "watch event of unknown type \"\""},
      {R"({"type":"ADDED"})", "not a watch event: no object"},
      {R"({"type":"ERROR"})", "not a watch event: no object"},
      {R"({"type":5,"object":{}})", "not a watch event: type: expected a string, got a number"},
      {"[]", "not a watch event: expected an object, got an array"},
      {R"({"kind":"Service","metadata":{}})", "watch event of unknown type \"\""},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.frame) {
      const auto event = decode_watch_event<Service>(c.frame);
      REQUIRE_FALSE(event);
      CHECK(event.error().code == Errc::Invalid);
      CHECK(event.error().what.substr(0, std::string_view(c.error).size()) == c.error);
    }
  }
}

}  // namespace
}  // namespace shunt::kube
