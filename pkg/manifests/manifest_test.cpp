#include "manifests/manifest.h"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <iterator>
#include <map>

#include "kube/decode_json.h"
#include "manifests/json_outline.h"

namespace shunt::manifests {
namespace {

using Lines = std::vector<std::string>;

Manifest read(std::string_view text, Format format = Format::Yaml) {
  auto got = parse_manifest(text, format);
  REQUIRE(got);
  return std::move(*got);
}
std::string error_of(std::string_view text, Format format) {
  const auto got = parse_manifest(text, format);
  return got ? "" : got.error().what;
}

constexpr std::string_view kWeb = R"(
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, creationTimestamp: "2026-11-30T06:00:00Z"}
spec:
  clusterIP: 10.96.0.10
  selector: {app: web}
  ports:
    - port: 80
      targetPort: 8080
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-1
  namespace: shop
  labels:
    kubernetes.io/service-name: web
addressType: IPv4
ports: [{port: 8080}]
endpoints:
  - addresses: [10.1.0.1]
  - addresses: [10.1.0.2]
    conditions: {ready: false}
---
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {topology.kubernetes.io/zone: a}}
status: {addresses: [{type: InternalIP, address: 192.0.2.1}]}
---
apiVersion: networking.k8s.io/v1
kind: ServiceCIDR
metadata: {name: kubernetes}
spec: {cidrs: [10.96.0.0/16]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
)";

TEST_CASE("a manifest as people write it becomes objects with their defaults") {
  const Manifest got = read(kWeb);
  CHECK(got.complaints.empty());
  CHECK(got.ignored == 1);
  REQUIRE(got.objects.services.size() == 1);
  const kube::Service& service = *got.objects.services[0];
  CHECK(service.meta.key == kube::ObjectKey{"shop", "web"});
  CHECK(service.meta.creation_seconds > 0);
  CHECK(service.cluster_ip == "10.96.0.10");
  CHECK(service.ports == std::vector<kube::ServicePortSpec>{{"", "TCP", 80, 0}});
  REQUIRE(got.objects.slices.size() == 1);
  const kube::EndpointSlice& slice = *got.objects.slices[0];
  CHECK(slice.service_name == "web");
  CHECK(slice.ports == std::vector<kube::SlicePort>{{"", "TCP", 8080}});
  REQUIRE(slice.endpoints.size() == 2);
  CHECK(slice.endpoints[0].ready);
  CHECK_FALSE(slice.endpoints[1].ready);
  REQUIRE(got.objects.nodes.size() == 1);
  CHECK(got.objects.nodes[0]->zone == "a");
  REQUIRE(got.objects.service_cidrs.size() == 1);
}

TEST_CASE("a manifest may say what IPVS is to do for a Service") {
  const Manifest got = read(R"(
apiVersion: v1
kind: Service
metadata:
  name: web
  annotations:
    kube-shunt.io/ipvs-scheduler: wlc
    kube-shunt.io/ipvs-weights: "zone:eu-1a=3, *=1"
spec: {clusterIP: 10.96.0.10}
)");
  REQUIRE(got.objects.services.size() == 1);
  CHECK(got.objects.services[0]->ipvs_scheduler == "wlc");
  CHECK(got.objects.services[0]->ipvs_weights == "zone:eu-1a=3, *=1");
}

const std::string kService =
    R"({"kind":"Service","apiVersion":"v1","metadata":{"name":"web"},"spec":{"clusterIP":"10.0.0.1"}})";
const std::string kItem = R"({"metadata":{"name":"db"},"spec":{"clusterIP":"10.0.0.2"}})";

TEST_CASE("Lists hold objects of any kind, or of the kind they are named after") {
  const std::string list = R"({"kind":"List","apiVersion":"v1","items":[)" + kService + "]}";
  const std::string typed =
      R"({"items":[)" + kItem + R"(],"kind":"ServiceList","apiVersion":"v1","metadata":{}})";
  for (const Format format : {Format::Json, Format::Yaml}) {
    CHECK(read(list, format).objects.services.size() == 1);
    CHECK(read(typed, format).objects.services.size() == 1);
  }
  CHECK(read(list + "\n" + typed + kService, Format::Json).objects.services.size() == 3);
  CHECK(read(R"({"kind":"List","apiVersion":"v1","items":null})", Format::Json).complaints.empty());
}

TEST_CASE("what a real API server listed is read as it is, twice the same") {
  for (const char* name : {"services", "endpointslices", "node", "servicecidrs"}) {
    CAPTURE(name);
    std::ifstream file(
        std::string(SHUNT_SOURCE_DIR) + "/test/recordings/list-" + name + ".json.body");
    const std::string body{std::istreambuf_iterator<char>(file), {}};
    REQUIRE_FALSE(body.empty());
    const Manifest json = read(body, Format::Json);
    const Manifest yaml = read(body, Format::Yaml);  // JSON is YAML
    CHECK(json.objects.size() > 0);
    CHECK(json.complaints == yaml.complaints);
    REQUIRE(json.objects.size() == yaml.objects.size());
    for (std::size_t i = 0; i < json.objects.services.size(); ++i) {
      CHECK(*json.objects.services[i] == *yaml.objects.services[i]);
    }
    for (std::size_t i = 0; i < json.objects.slices.size(); ++i) {
      CHECK(*json.objects.slices[i] == *yaml.objects.slices[i]);
    }
  }
}

TEST_CASE("a Service of a real API server needs no defaults") {
  std::ifstream file(std::string(SHUNT_SOURCE_DIR) + "/test/recordings/list-services.json.body");
  const std::string body{std::istreambuf_iterator<char>(file), {}};
  const auto list = kube::decode_list<kube::Service>(body);
  REQUIRE(list);
  std::map<kube::ObjectKey, kube::Service> as_listed;
  for (const kube::Service& service : list->items) {
    as_listed[service.meta.key] = service;
  }
  const Manifest got = read(body, Format::Json);
  CHECK_FALSE(got.objects.services.empty());
  for (const auto& service : got.objects.services) {
    CHECK(*service == as_listed[service->meta.key]);
  }
}

TEST_CASE("an object that cannot be read loses only itself, and is named with its line") {
  const Manifest got = read(
      "apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {clusterIP: 5}\n"
      "---\nkind: Service\napiVersion: v1\nmetadata: {name: nowhere}\n"
      "---\nkind: Service\nmetadata: {name: old}\n"
      "---\nmetadata: {name: what}\n"
      "---\njust words\n"
      "---\n" +
      kService);
  CHECK(got.objects.services.size() == 1);
  REQUIRE(got.complaints.size() == 5);
  CHECK(
      got.complaints[0] == "line 1: Service: bad: spec.clusterIP: expected a string, got a number");
  CHECK(
      got.complaints[1].find("Service default/nowhere: set aside: spec.clusterIP") !=
      std::string::npos);
  CHECK(got.complaints[2].find("apiVersion \"\" is not v1") != std::string::npos);
  CHECK(got.complaints[3].find("it has no kind") != std::string::npos);
  CHECK(got.complaints[4].find("not an object") != std::string::npos);
}

TEST_CASE("a text that is broken as a whole is an error with its line") {
  CHECK(error_of(kService + "\n\n{\"kind\": \"Ser", Format::Json).starts_with("line 3: "));
  CHECK(error_of("]", Format::Json) == "line 1: not JSON: a bracket that nobody opened");
  CHECK(error_of(std::string(300, '['), Format::Json) == "line 1: nested deeper than 200");
  CHECK(error_of("a: [", Format::Yaml).starts_with("line "));
  CHECK(error_of(std::string(kMaxFile + 1, ' '), Format::Json).starts_with("line 1: "));
}

TEST_CASE("complaints are bounded") {
  std::string many;
  for (int i = 0; i < 1000; ++i) {
    many += "{} ";
  }
  const Manifest got = read(many, Format::Json);
  CHECK(got.complaints.size() == 101);
  CHECK(got.complaints.back() == "and 900 more");
}

TEST_CASE("an outline finds kind and items whatever stands around them") {
  const auto got =
      outline_of(R"( {"a":{"kind":"x","items":[1]},"items" : [ 1 , {"b":"]}"},"c\"]" ,[] ],)"
                 R"("kind":"ThingList","apiVersion":"v1","z":null} )");
  REQUIRE(got);
  CHECK(got->kind == "ThingList");
  CHECK(got->api_version == "v1");
  CHECK(got->items == std::vector<std::string_view>{"1", R"({"b":"]}"})", R"("c\"]")", "[]"});
  for (const char* broken :
       {"",
        "[]",
        "{",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\":1 \"b\":2}",
        "{\"kind\":\"XList\",\"items\":[1,]}",
        "{\"kind\":\"XList\",\"items\":{}}"}) {
    CAPTURE(broken);
    CHECK_FALSE(outline_of(broken));
  }
}

}  // namespace
}  // namespace shunt::manifests
