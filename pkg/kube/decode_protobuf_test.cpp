// What the recordings do not show: every field, fields that are not what the API says, and bytes
// that are no protobuf.
#include "kube/decode_protobuf.h"

#include <catch2/catch_test_macros.hpp>

#include "kube/testing/protobuf_bytes.h"

namespace shunt::kube::protobuf {
namespace {

using testing::bytes;
using testing::entry;
using testing::enveloped;
using testing::metadata;
using testing::number;
using testing::tag;
using testing::varint;
using testing::watch_event;
using Texts = std::vector<std::string>;

template <typename T>
T decoded(const std::string& kind, const std::string& raw) {
  auto object = decode_object<T>(enveloped(kind, raw));
  INFO((object ? std::string() : object.error().what));
  REQUIRE(object);
  return *object;
}
template <typename T>
std::string refusal(const std::string& kind, const std::string& raw) {
  const auto object = decode_object<T>(enveloped(kind, raw));
  if (object) {
    return "decoded";
  }
  CHECK(object.error().code == Errc::Invalid);
  return object.error().what;
}
Texts lines(const std::vector<DecodeIssue>& issues) {
  Texts out;
  for (const DecodeIssue& issue : issues) {
    out.push_back((issue.object_lost ? "lost " : "kept ") + issue.object + ": " + issue.what);
  }
  return out;
}

// --- Every field

const std::string& full_metadata() {
  static const std::string text =
      bytes(1, "web") + bytes(2, "generated") + bytes(3, "shop") + bytes(4, "self") +
      bytes(5, "u-1") + bytes(6, "17") + number(7, 3) + bytes(8, number(1, 1796057089)) +
      bytes(9, number(1, 5)) + number(10, 30) + entry(11, "app", "web") + bytes(13, "owner") +
      bytes(14, "finalizer") + bytes(17, "\xff\xff managed fields are not looked at");
  return text;
}
ObjectMeta full_meta() { return {{"shop", "web"}, "u-1", "17", 1796057089}; }

TEST_CASE("every field of a Service that we read, in protobuf") {
  const std::string port = bytes(1, "http") + bytes(2, "TCP") + number(3, 80) +
                           bytes(4, number(1, 0) + number(2, 8080)) + number(5, 30080) +
                           bytes(6, "h2c");
  const std::string spec =
      bytes(1, port) + bytes(1, number(3, 81)) + entry(2, "app", "web") + bytes(3, "10.0.0.1") +
      bytes(4, "LoadBalancer") + bytes(5, "1.2.3.4") + bytes(5, "1.2.3.5") + bytes(7, "ClientIP") +
      bytes(8, "lb") + bytes(9, "10.0.0.0/8") + bytes(10, "external") + bytes(11, "Local") +
      number(12, 30000) + number(13, 1) + bytes(14, bytes(1, number(1, 99))) +
      bytes(17, "PreferDualStack") + bytes(18, "10.0.0.1") + bytes(18, "fd00::1") +
      bytes(19, "IPv4") + bytes(19, "IPv6") + number(20, 1) + bytes(21, "class") +
      bytes(22, "Cluster") + bytes(23, "PreferClose");
  const std::string ingress = bytes(1, "9.9.9.9") + bytes(2, "host") + bytes(3, "VIP");
  const std::string annotations = entry(12, "other", "not kept") +
                                  entry(12, kIpvsSchedulerAnnotation, "mh") +
                                  entry(12, kIpvsWeightsAnnotation, "local=2, *=0");
  const Service got = decoded<Service>(
      "Service",
      bytes(1, full_metadata() + entry(11, kServiceProxyNameLabel, "") + annotations) +
          bytes(2, spec) +
          bytes(3, bytes(1, bytes(1, ingress) + bytes(1, bytes(1, "8.8.8.8"))) + bytes(2, "c")));
  CHECK(got.meta == full_meta());
  CHECK(got.has_proxy_name_label);
  CHECK(got.ports == std::vector<ServicePortSpec>{{"http", "TCP", 80, 30080}, {"", "", 81, 0}});
  CHECK(got.cluster_ip == "10.0.0.1");
  CHECK(got.type == "LoadBalancer");
  CHECK(got.external_ips == Texts{"1.2.3.4", "1.2.3.5"});
  CHECK(got.session_affinity == "ClientIP");
  CHECK(got.load_balancer_source_ranges == Texts{"10.0.0.0/8"});
  CHECK(got.external_traffic_policy == "Local");
  CHECK(got.health_check_node_port == 30000);
  CHECK(got.client_ip_timeout_seconds == 99);
  CHECK(got.cluster_ips == Texts{"10.0.0.1", "fd00::1"});
  CHECK(got.ip_families == Texts{"IPv4", "IPv6"});
  CHECK(got.internal_traffic_policy == "Cluster");
  CHECK(got.ingress == std::vector<LoadBalancerIngress>{{"9.9.9.9", "VIP"}, {"8.8.8.8", {}}});
  CHECK(got.ipvs_scheduler == "mh");
  CHECK(got.ipvs_weights == "local=2, *=0");
}

TEST_CASE("of annotations in protobuf the beginning is kept, whatever bytes they are") {
  const Service got = decoded<Service>(
      "Service",
      bytes(
          1,
          entry(12, kIpvsSchedulerAnnotation, std::string(10'000, '\xff')) +
              entry(12, kIpvsWeightsAnnotation, std::string(100'000, 'w'))));
  CHECK(got.ipvs_scheduler == std::string(kMaxIpvsScheduler + 1, '\xff'));
  CHECK(got.ipvs_weights == std::string(kMaxIpvsWeights + 1, 'w'));
}

TEST_CASE("every field of an EndpointSlice that we read, in protobuf") {
  const std::string full_endpoint =
      bytes(1, "10.1.0.1") + bytes(1, "10.1.0.2") +
      bytes(2, number(1, 0) + number(2, 0) + number(3, 1)) + bytes(3, "hostname") +
      bytes(4, bytes(3, "pod")) + entry(5, "topology", "old") + bytes(6, "node1") +
      bytes(7, "zone") +
      bytes(8, bytes(1, bytes(1, "a")) + bytes(1, bytes(1, "b")) + bytes(2, bytes(1, "n")));
  const EndpointSlice got = decoded<EndpointSlice>(
      "EndpointSlice",
      bytes(4, "IPv4") + bytes(3, bytes(1, "") + bytes(2, "UDP") + number(3, 53)) +
          bytes(3, bytes(4, "h2c")) + bytes(2, full_endpoint) + bytes(2, "") +
          bytes(
              1,
              full_metadata() + entry(11, kServiceNameLabel, "web") +
                  entry(11, kHeadlessLabel, "") +
                  entry(12, kTriggerTimeAnnotation, "1970-01-01T00:00:02.5Z")));
  CHECK(got.meta == full_meta());
  CHECK(got.service_name == "web");
  CHECK(got.has_headless_label);
  CHECK(got.address_type == "IPv4");
  CHECK(got.trigger_time_ns == 2'500'000'000);
  REQUIRE(got.endpoints.size() == 2);
  CHECK(
      got.endpoints[0] ==
      SliceEndpoint{
          net::parse_ip("10.1.0.1"), false, false, true, "node1", {"a", "b"}, {"n"}, "zone"});
  CHECK(got.endpoints[1] == SliceEndpoint{});  // no condition: ready and serving
  CHECK(got.ports == std::vector<SlicePort>{{"", "UDP", 53}, {std::nullopt, "", 0}});
}

TEST_CASE("every field of a Node and of a ServiceCIDR that we read, in protobuf") {
  const Node node = decoded<Node>(
      "Node",
      bytes(1, full_metadata() + entry(11, kZoneLabel, "z")) +
          bytes(
              2,
              bytes(1, "10.0.0.0/24") + bytes(5, bytes(1, "taint") + bytes(3, "NoSchedule")) +
                  bytes(7, "10.0.0.0/24") + bytes(7, "fd00::/64")) +
          bytes(3, bytes(3, "Running") + bytes(5, bytes(1, "InternalIP") + bytes(2, "1.2.3.4"))));
  CHECK(node.meta == full_meta());
  CHECK(node.zone == "z");
  CHECK(node.deleting);
  CHECK(node.taint_keys == Texts{"taint"});
  CHECK(node.pod_cidrs == Texts{"10.0.0.0/24", "fd00::/64"});
  CHECK(node.addresses == std::vector<NodeAddress>{{"InternalIP", "1.2.3.4"}});

  const Node bare = decoded<Node>("Node", bytes(1, bytes(9, "")));
  CHECK(bare == Node{});  // an empty time is none

  const ServiceCidr cidr = decoded<ServiceCidr>(
      "ServiceCIDR", bytes(1, full_metadata()) + bytes(2, bytes(1, "10.0.0.0/8")) + bytes(3, "x"));
  CHECK(cidr.meta == full_meta());
  CHECK(cidr.cidrs == Texts{"10.0.0.0/8"});
}

TEST_CASE("unknown fields of every wire type are skipped, and messages that come twice merge") {
  const std::string unknown =
      number(99, -1) + tag(100, 1) + "12345678" + tag(101, 5) + "1234" + bytes(102, "\xff\xfe");
  const Service got = decoded<Service>(
      "Service",
      unknown + bytes(1, unknown + bytes(1, "a") + bytes(1, "b")) + bytes(2, bytes(4, "X")) +
          bytes(2, unknown + bytes(3, "10.0.0.1")));
  CHECK(got.meta.key.name == "b");
  CHECK(got.type == "X");
  CHECK(got.cluster_ip == "10.0.0.1");
}

// --- Fields that are not what the API says

TEST_CASE("a protobuf field of the wrong type loses the object and says where") {
  const std::string name = bytes(1, metadata("web"));
  struct Case {
    std::string raw;
    const char* what;
  };
  for (const Case& c : {
           Case{name + number(2, 5), "spec: expected bytes, got a number"},
           Case{name + bytes(2, number(4, 5)), "spec.type: expected bytes, got a number"},
           Case{
               name + bytes(2, bytes(1, "") + bytes(1, bytes(3, "80"))),
               "spec.ports[1].port: expected a number, got bytes"},
           Case{
               name + bytes(2, bytes(1, number(3, std::int64_t{1} << 40))),
               "spec.ports[0].port: expected a 32-bit integer, got 1099511627776"},
           Case{
               name + bytes(2, bytes(18, "a") + number(18, 1)),
               "spec.clusterIPs[1]: expected bytes, got a number"},
           Case{
               name + bytes(2, bytes(14, bytes(1, bytes(1, "1")))),
               "spec.sessionAffinityConfig.clientIP.timeoutSeconds: expected a number, got bytes"},
           Case{
               name + bytes(3, bytes(1, bytes(1, "") + bytes(1, tag(1, 5) + "1234"))),
               "status.loadBalancer.ingress[1].ip: expected bytes, got a fixed-size number"},
           Case{name + bytes(2, bytes(3, "a\xff")), "spec.clusterIP: not UTF-8: \"a?\""},
           Case{name + bytes(2, bytes(3, "a")).substr(0, 4), "broken protobuf: "},
           Case{name + bytes(2, tag(3, 2) + varint(4'000'000'000U)), "broken protobuf: "},
           Case{name + bytes(2, tag(12, 0) + std::string(11, '\xff')), "broken protobuf: "},
           Case{name + bytes(2, tag(12, 0) + "\xff"), "broken protobuf: "},
           Case{name + bytes(2, tag(3, 3)), "broken protobuf: "},
           Case{name + bytes(2, std::string(1, '\0')), "broken protobuf: "},
       }) {
    const std::string got = refusal<Service>("Service", c.raw);
    CHECK(got.substr(0, 8 + std::string_view(c.what).size()) == std::string("ns/web: ") + c.what);
  }
  CHECK(
      refusal<EndpointSlice>("EndpointSlice", bytes(1, entry(11, kServiceNameLabel, "\xff"))) ==
      "object: metadata.labels.kubernetes.io/service-name: not UTF-8: \"?\"");
  CHECK(
      refusal<EndpointSlice>(
          "EndpointSlice",
          bytes(2, "") + bytes(2, bytes(8, bytes(1, "") + bytes(1, number(1, 1))))) ==
      "object: endpoints[1].hints.forZones[1].name: expected bytes, got a number");
  CHECK(
      refusal<Node>("Node", bytes(2, bytes(5, number(1, 1)))) ==
      "object: spec.taints[0].key: expected bytes, got a number");
}

TEST_CASE("a name from a foreign hand makes no second line of an error") {
  CHECK(
      refusal<Service>("Service", bytes(1, bytes(1, "a\nb")) + number(2, 1)) ==
      "a?b: spec: expected bytes, got a number");
  CHECK(
      refusal<Service>("Service", bytes(1, bytes(1, std::string(5000, 'x'))) + number(2, 1))
          .size() < 500);
}

TEST_CASE("numbers at the edge of 32 bits are numbers in protobuf") {
  const Service got = decoded<Service>(
      "Service", bytes(2, bytes(1, number(3, 2147483647) + number(5, -2147483648LL))));
  CHECK(got.ports[0].port == 2147483647);
  CHECK(got.ports[0].node_port == -2147483647 - 1);
}

TEST_CASE("a protobuf endpoint address that is no IP address loses only that address") {
  const std::string endpoints = bytes(2, bytes(1, "10.0.0.1")) + bytes(2, bytes(1, "h.example")) +
                                bytes(2, bytes(1, "") + bytes(1, "10.0.0.2"));
  const Texts complaints{
      "kept object: endpoints[1].addresses[0]: not an IP address: \"h.example\"",
      "kept object: endpoints[2].addresses[0]: not an IP address: \"\""};
  for (const std::string type : {"IPv4", "IPv6", "FQDN", ""}) {
    std::vector<DecodeIssue> issues;
    const auto got = decode_object<EndpointSlice>(
        enveloped("EndpointSlice", endpoints + bytes(4, type)), &issues);
    REQUIRE(got);
    REQUIRE(got->endpoints.size() == 3);
    CHECK(got->endpoints[0].address == net::parse_ip("10.0.0.1"));
    CHECK_FALSE(got->endpoints[1].address);
    CHECK_FALSE(got->endpoints[2].address);
    CHECK(lines(issues) == (type.starts_with("IP") ? complaints : Texts{}));
  }
}

TEST_CASE("every truncation of a protobuf object is refused, or is one that ends at a field") {
  const std::string raw = bytes(1, full_metadata()) + bytes(2, bytes(3, "10.0.0.1"));
  for (std::size_t size = 0; size < raw.size(); ++size) {
    INFO(size);
    const bool at_field = size == 0 || size == bytes(1, full_metadata()).size();
    CHECK((refusal<Service>("Service", raw.substr(0, size)) == "decoded") == at_field);
  }
}

// --- Envelopes

TEST_CASE("an object needs its envelope, and must be of the kind that was asked for") {
  const auto error = [](const std::string& body) {
    const auto object = decode_object<Service>(body);
    return object ? "decoded" : object.error().what;
  };
  const std::string raw = bytes(1, metadata("web"));
  CHECK(error(enveloped("Service", raw)) == "decoded");
  CHECK(error(enveloped("", raw)) == "decoded");
  CHECK(error("") == "object: not a Kubernetes protobuf object: it does not begin with k8s");
  CHECK(error("k8s") == "object: not a Kubernetes protobuf object: it does not begin with k8s");
  CHECK(error("{\"kind\":\"Service\"}").starts_with("object: not a Kubernetes protobuf object"));
  CHECK(error(std::string("k8s\0", 4)) == "object: an empty protobuf object");
  CHECK(error(enveloped("Pod", raw)) == "ns/web: kind: \"Pod\" is not the kind expected here");
  CHECK(error(enveloped("Service", raw).substr(0, 20)).starts_with("object: broken protobuf: "));
  CHECK(
      error(std::string("k8s\0", 4) + number(2, 1)) == "object: raw: expected bytes, got a number");
}

TEST_CASE("a protobuf Status, and half of one") {
  const std::string details = bytes(1, "n") + bytes(4, bytes(1, "ResourceVersionTooLarge")) +
                              bytes(4, bytes(2, "m")) + number(5, 1);
  const std::string raw = bytes(1, "") + bytes(2, "Failure") + bytes(3, "m") + bytes(4, "Timeout") +
                          bytes(5, details) + number(6, 504);
  const auto status = decode_status(enveloped("Status", raw));
  REQUIRE(status);
  CHECK(status->code == 504);
  CHECK(status->reason == "Timeout");
  CHECK(status->message == "m");
  CHECK(status->cause_reasons == Texts{"ResourceVersionTooLarge", ""});
  CHECK(status->retry_after_seconds == 1);

  const auto half = decode_status(enveloped("Status", bytes(4, "Gone") + bytes(6, "410")));
  REQUIRE(half);
  CHECK(half->reason == "Gone");
  CHECK(half->code == 0);
  // Go writes the zero; it means no time.
  CHECK(
      decode_status(enveloped("Status", bytes(5, number(5, 0))))->retry_after_seconds ==
      std::nullopt);
  for (const std::string& body :
       {std::string(),
        std::string("Unauthorized"),
        enveloped("Service", ""),
        enveloped("Status", raw).substr(0, 30)}) {
    CHECK_FALSE(decode_status(body));
  }
}

// --- Watch events

TEST_CASE("protobuf events of objects, whatever the order of their fields") {
  const std::string object = enveloped("Service", bytes(1, metadata("web", "12")));
  for (const auto& [name, type] : {
           std::pair{"ADDED", EventType::Added},
           std::pair{"MODIFIED", EventType::Modified},
           std::pair{"DELETED", EventType::Deleted},
       }) {
    for (const std::string& frame :
         {watch_event(name, object), bytes(2, bytes(1, object)) + bytes(1, name)}) {
      const auto event = decode_watch_event<Service>(frame);
      REQUIRE(event);
      CHECK(event->type == type);
      REQUIRE(event->object);
      CHECK(event->object->meta.key == ObjectKey{"ns", "web"});
      CHECK(event->meta == event->object->meta);
      CHECK(event->issues.empty());
    }
  }
}

TEST_CASE("a protobuf event whose object is bad keeps its metadata") {
  const auto event = decode_watch_event<Service>(watch_event(
      "MODIFIED", enveloped("Service", bytes(1, metadata("web", "12")) + number(2, 1))));
  REQUIRE(event);
  CHECK(event->object == std::nullopt);
  CHECK(event->meta.key == ObjectKey{"ns", "web"});
  CHECK(event->meta.resource_version == "12");
  CHECK(lines(event->issues) == Texts{"lost ns/web: spec: expected bytes, got a number"});
}

TEST_CASE("a protobuf event whose object has no envelope, or another kind's, has no object") {
  const std::string raw = bytes(1, metadata("n", "4"));
  const auto bare = decode_watch_event<Service>(watch_event("ADDED", raw));
  REQUIRE(bare);
  CHECK(bare->object == std::nullopt);
  CHECK(bare->issues.size() == 1);
  const auto other = decode_watch_event<Service>(watch_event("ADDED", enveloped("Node", raw)));
  REQUIRE(other);
  CHECK(other->object == std::nullopt);
  CHECK(other->meta.resource_version == "4");
  CHECK(lines(other->issues) == Texts{"lost ns/n: kind: \"Node\" is not the kind expected here"});
}

TEST_CASE("protobuf bookmarks and errors") {
  const auto bookmark = [](const std::string& value) {
    const auto event = decode_watch_event<EndpointSlice>(watch_event(
        "BOOKMARK",
        enveloped(
            "EndpointSlice",
            bytes(1, bytes(6, "804") + entry(12, kInitialEventsEndAnnotation, value)))));
    REQUIRE(event);
    CHECK(event->type == EventType::Bookmark);
    CHECK(event->meta.resource_version == "804");
    CHECK(event->object == std::nullopt);
    CHECK(event->issues.empty());
    return event->initial_events_end;
  };
  CHECK(bookmark("true"));
  CHECK_FALSE(bookmark("false"));

  const auto error = decode_watch_event<EndpointSlice>(
      watch_event("ERROR", enveloped("Status", bytes(4, "Expired") + number(6, 410))));
  REQUIRE(error);
  CHECK(error->type == EventType::Error);
  CHECK(error->status.reason == "Expired");
  CHECK(error->status.code == 410);
  CHECK(error->issues.empty());
  const auto unreadable = decode_watch_event<EndpointSlice>(watch_event("ERROR", "x"));
  REQUIRE(unreadable);
  CHECK(unreadable->issues.size() == 1);
}

TEST_CASE("what is no protobuf event is refused") {
  struct Case {
    const char* name;
    std::string frame;
    const char* error;
  };
  const std::string object = enveloped("Service", "");
  for (const Case& c : {
           Case{"empty", "", "watch event of unknown type \"\""},
           Case{"an envelope", object, "not a watch event: "},
           Case{"JSON", "{\"type\":\"ADDED\",\"object\":{}}", "not a watch event: "},
           Case{
               "unknown type", watch_event("SYNC", object), "watch event of unknown type \"SYNC\""},
           Case{"no type", bytes(2, bytes(1, object)), "watch event of unknown type \"\""},
           Case{"no object", bytes(1, "ADDED"), "not a watch event: no object"},
           Case{"type is a number", number(1, 1), "not a watch event: type: expected bytes"},
           Case{
               "cut short",
               watch_event("ADDED", object).substr(0, 12),
               "not a watch event: broken protobuf: "},
       }) {
    DYNAMIC_SECTION(c.name) {
      const auto event = decode_watch_event<Service>(c.frame);
      REQUIRE_FALSE(event);
      CHECK(event.error().code == Errc::Invalid);
      CHECK(event.error().what.substr(0, std::string_view(c.error).size()) == c.error);
    }
  }
}

}  // namespace
}  // namespace shunt::kube::protobuf
