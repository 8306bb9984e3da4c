// Answers in protobuf: the recorded bytes of a real server, and who gets them.
#include "test/apiserver/protobuf.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sstream>

#include "test/apiserver/accept.h"
#include "test/apiserver/proto_tree.h"
#include "test/apiserver/test_client.h"

namespace shunt::test_api {
namespace {

const Headers kProtobuf{{"Accept", "application/vnd.kubernetes.protobuf, */*"}};
constexpr const char* kAccept = "application/vnd.kubernetes.protobuf, */*";
constexpr const char* kServices = "/api/v1/services";

std::string version(TestServer& server) { return std::to_string(server->store().version()); }

// "BOOKMARK v1/Service", and the lines of the object, its version aside.
std::string frame_summary(const std::string& frame) {
  const auto event = parse_proto(frame).value_or(std::vector<ProtoField>());
  const std::string extension = proto_bytes(event, 2);
  const auto raw = parse_proto(extension).value_or(std::vector<ProtoField>());
  const auto envelope = parse_envelope(proto_bytes(raw, 1));
  const auto type = parse_proto(proto_bytes(envelope, 1)).value_or(std::vector<ProtoField>());
  return proto_bytes(event, 1) + " " + proto_bytes(type, 1) + "/" + proto_bytes(type, 2) + "\n" +
         proto_lines(envelope, {"2.1.6"});
}

// The frames of a recorded stream.
std::vector<std::string> frames_of(std::string_view stream) {
  std::vector<std::string> out;
  while (stream.size() >= 4) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      size = (size << 8U) | static_cast<unsigned char>(stream[i]);
    }
    out.emplace_back(stream.substr(4, size));
    stream.remove_prefix(std::min(stream.size(), 4 + size));
  }
  return out;
}

}  // namespace

TEST_CASE("protobuf lists are the recorded ones, versions aside") {
  struct Case {
    const char* recording;
    const char* target;
  };
  const Case cases[] = {
      {"list-services", "/api/v1/services?fieldSelector=spec.clusterIP!%3DNone"},
      {"list-endpointslices", "/apis/discovery.k8s.io/v1/endpointslices"},
      {"list-node", "/api/v1/nodes?fieldSelector=metadata.name=node1"},
      {"list-servicecidrs", "/apis/networking.k8s.io/v1/servicecidrs"}};
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.recording) {
      const std::string name = c.recording;
      TestServer server;
      server.apply(recording(name + ".json.body"), "?raw=true");
      const Reply reply = server.call("GET", c.target, "", kProtobuf);
      REQUIRE(reply.code == 200);
      // Of the list, and of each item.
      const std::vector<std::string> versions{"2.1.2", "2.2.1.6"};
      const auto want = parse_envelope(recording(name + ".pb.body"));
      CHECK(want.size() == 4);
      CHECK(proto_lines(parse_envelope(reply.body), versions) == proto_lines(want, versions));
      const std::string head = recording(name + ".pb.headers");
      for (const auto& [header, value] : reply.headers) {
        CHECK(head.find(header + ": ") != std::string::npos);
      }
      CHECK(reply.headers.at("Content-Type") == "application/vnd.kubernetes.protobuf");
    }
  }
}

TEST_CASE("protobuf pages go on where they stopped") {
  TestServer server;
  server.apply(recording("list-services.json.body"));
  const auto page = [&](const std::string& query) {
    return parse_envelope(server.call("GET", kServices + query, "", kProtobuf).body);
  };
  const auto list = [](const std::vector<ProtoField>& envelope) {
    return parse_proto(proto_bytes(envelope, 2)).value_or(std::vector<ProtoField>());
  };
  const auto first = list(page("?limit=3"));
  CHECK(first.size() == 4);
  const auto metadata = parse_proto(proto_bytes(first, 1)).value_or(std::vector<ProtoField>());
  REQUIRE(metadata.size() == 4);
  CHECK(metadata[3].integer == 4);  // remainingItemCount
  const auto rest = list(page("?limit=10&continue=" + proto_bytes(metadata, 3)));
  CHECK(rest.size() == 5);
}

TEST_CASE("a protobuf watch frames its events, and each object has an envelope of its own") {
  TestServer server;
  server.apply(recording("list-services.json.body"), "?raw=true");
  LineClient watch(
      server,
      "/api/v1/services?watch=true&allowWatchBookmarks=true&sendInitialEvents=true"
      "&resourceVersionMatch=NotOlderThan",
      kAccept);
  for (int i = 0; i < 7; ++i) {
    CHECK_THAT(
        frame_summary(watch.frame().value_or("")),
        Catch::Matchers::StartsWith("ADDED v1/Service\n"));
  }
  CHECK_THAT(
      watch.head(),
      Catch::Matchers::ContainsSubstring(
          "Content-Type: application/vnd.kubernetes.protobuf;stream=watch\r\n"));
  CHECK_THAT(
      frame_summary(watch.frame().value_or("")),
      Catch::Matchers::StartsWith("BOOKMARK v1/Service\n"));
  server.apply(service("later"));
  CHECK_THAT(
      frame_summary(watch.frame().value_or("")), Catch::Matchers::StartsWith("ADDED v1/Service\n"));
  server.call("DELETE", "/api/v1/namespaces/shop/services/later");
  const std::string gone = watch.frame().value_or("");
  CHECK_THAT(frame_summary(gone), Catch::Matchers::StartsWith("DELETED v1/Service\n"));
  CHECK(gone.find("2\x02" + version(server)) != std::string::npos);  // at the deletion's version
}

TEST_CASE("the bookmark that ends a protobuf streaming list is the recorded one") {
  TestServer server;
  const auto recorded = frames_of(recording("watchlist-endpointslices.pb.body"));
  LineClient watch(
      server,
      "/apis/discovery.k8s.io/v1/endpointslices?watch=true&allowWatchBookmarks=true"
      "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
      kAccept);
  CHECK(frame_summary(watch.frame().value_or("")) == frame_summary(recorded.back()));
}

TEST_CASE("recorded watches in JSON encode into the recorded frames, byte for byte") {
  struct Case {
    const char* recording;
    const char* kind;
  };
  for (const Case& c :
       {Case{"watch-services", "Service"}, Case{"watch-endpointslices", "EndpointSlice"}}) {
    DYNAMIC_SECTION(c.recording) {
      const Resource& resource = *resource_of_kind(c.kind)->resource;
      std::istringstream lines(recording(std::string(c.recording) + ".json.body"));
      const auto frames = frames_of(recording(std::string(c.recording) + ".pb.body"));
      std::size_t at = 0;
      for (std::string line; std::getline(lines, line); ++at) {
        const Json event = Json::parse(line);
        const std::string bytes = proto::encoded(*resource.schema, event["object"].dump());
        const std::string frame =
            proto::frame_head(
                text_at(event, "type"), resource.api_version(), resource.kind, bytes.size()) +
            bytes + std::string(proto::envelope_tail());
        REQUIRE(at < frames.size());
        CHECK(frame_summary(frame.substr(4)) == frame_summary(frames[at]));
        CHECK(frame.substr(4) == frames[at]);
      }
      CHECK(at == frames.size());
      CHECK(at >= 3);
    }
  }
}

TEST_CASE("errors of a protobuf client are protobuf, word for word") {
  TestServer server([](ServerOptions& options) { options.log_size = 2; });
  server.apply(service("a") + service("b") + service("c"));
  LineClient watch(server, "/api/v1/services?watch=true&resourceVersion=1", kAccept);
  const std::string recorded = frames_of(recording("error-410-watch.pb.body")).front();
  const auto lines = [](const std::string& frame) {
    std::string text = frame_summary(frame);
    const std::size_t oldest = text.find("version: 1 (") + 12;
    return text.erase(oldest, text.find(')', oldest) - oldest);
  };
  CHECK(lines(watch.frame().value_or("")) == lines(recorded));
  CHECK(watch.finish() == LineClient::State::Ended);

  const Reply missing = server.call("GET", kServices + std::string("/none"), "", kProtobuf);
  CHECK(missing.code == 404);
  CHECK(missing.headers.at("Content-Type") == "application/vnd.kubernetes.protobuf");
  CHECK_FALSE(parse_envelope(missing.body).empty());
  const Reply future =
      server.call("GET", "/api/v1/services?resourceVersion=99999999", "", kProtobuf);
  CHECK(future.code == 504);
  CHECK(future.headers.at("Retry-After") == "1");
  CHECK_THAT(
      proto_lines(parse_envelope(future.body)),
      Catch::Matchers::ContainsSubstring("2.5.4.1 = ResourceVersionTooLarge\n") &&
          Catch::Matchers::ContainsSubstring("2.5.5 = 1\n2.5.6 = 0\n2.6 = 504\n"));
}

TEST_CASE("single objects in protobuf, read and written") {
  TestServer server;
  server.apply(service("a"));
  const std::string target = "/api/v1/namespaces/shop/services/a";
  const Reply got = server.call("GET", target, "", kProtobuf);
  CHECK_THAT(
      proto_lines(parse_envelope(got.body)),
      Catch::Matchers::StartsWith("1.1 = v1\n1.2 = Service\n2.1.1 = a\n2.1.2 = 0\n2.1.3 = shop\n"));
  Headers patch = kProtobuf;
  patch.emplace("Content-Type", "application/merge-patch+json");
  const Reply patched =
      server.call("PATCH", target, R"({"metadata":{"labels":{"x":"y\n\"z"}}})", patch);
  CHECK_THAT(
      proto_lines(parse_envelope(patched.body)),
      Catch::Matchers::ContainsSubstring("2.1.11.1 = x\n2.1.11.2 = y\n\"z\n"));
}

TEST_CASE("presence survives, and what no server could store is left out") {
  const auto lines = [](const char* json) {
    return proto_lines(*parse_proto(proto::encoded(proto::kEndpointSlice, json)));
  };
  CHECK(lines("{}") == lines(R"({"metadata":{},"addressType":""})"));
  const std::string metadata = lines("{}").substr(0, lines("{}").rfind("4 = "));
  CHECK(
      lines(R"({"addressType":"IPv4","ports":[{"name":"","port":0}],"endpoints":[)"
            R"({"addresses":["10.0.0.1"],"conditions":{"ready":false},"hints":{}},)"
            R"({"addresses":[7],"conditions":[],"nodeName":null,"zone":3}, 5]})") ==
      metadata +
          "2.1 = 10.0.0.1\n2.2.1 = 0\n2.8 = 0\n"  // ready is false, hints are there
          "2.2 = 0\n"
          "3.1 = 0\n3.3 = 0\n"  // the name is empty, not absent
          "4 = IPv4\n");
}

TEST_CASE("the Accept header decides") {
  struct Case {
    const char* accept;
    bool offered;
    std::optional<Encoding> want;
  };
  const auto json = Encoding::AsJson;
  const auto protobuf = Encoding::AsProtobuf;
  const Case cases[] = {
      {"", true, json},
      {"*/*", true, json},
      {"application/json", true, json},
      {"application/vnd.kubernetes.protobuf", true, protobuf},
      {"application/vnd.kubernetes.protobuf;stream=watch", true, protobuf},
      {"application/vnd.kubernetes.protobuf, */*", true, protobuf},
      {"application/vnd.kubernetes.protobuf,application/json", true, protobuf},
      {"application/json, application/vnd.kubernetes.protobuf", true, json},
      {"application/json;q=0.5, application/vnd.kubernetes.protobuf", true, protobuf},
      {"application/vnd.kubernetes.protobuf, */*", false, json},
      {"application/vnd.kubernetes.protobuf", false, std::nullopt},
      {"text/html", true, std::nullopt}};
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.accept << " " << c.offered) {
      CHECK(negotiate(c.accept, c.offered) == c.want);
    }
  }
}

TEST_CASE("without protobuf the server speaks JSON, or not at all") {
  TestServer server([](ServerOptions& options) { options.protobuf = false; });
  const Reply reply = server.call("GET", kServices, "", kProtobuf);
  CHECK(reply.json()["kind"] == "ServiceList");
  const Headers only{{"Accept", "application/vnd.kubernetes.protobuf"}};
  const Reply refused = server.call("GET", kServices, "", only);
  CHECK(refused.code == 406);
  CHECK(refused.json()["reason"] == "NotAcceptable");
}

TEST_CASE("events stay JSON") {
  TestServer server;
  const Reply reply = server.call("GET", "/apis/events.k8s.io/v1/events", "", kProtobuf);
  CHECK(reply.json()["kind"] == "EventList");
}

TEST_CASE("large protobuf lists are compressed for those who accept it") {
  TestServer server;
  std::string manifests;
  for (int i = 0; i < 1000; ++i) {
    manifests += service("s" + std::to_string(i));
  }
  server.apply(manifests);
  Headers gzip = kProtobuf;
  gzip.emplace("Accept-Encoding", "gzip");
  Reply large = server.call("GET", kServices, "", gzip);
  CHECK(large.headers["Content-Encoding"] == "gzip");
  Headers identity = kProtobuf;
  identity.emplace("Accept-Encoding", "identity");
  const Reply plain = server.call("GET", kServices, "", identity);
  CHECK_FALSE(plain.headers.contains("Content-Encoding"));
  CHECK(plain.body.size() > 131072);
  CHECK(plain.body == large.body);
}

}  // namespace shunt::test_api
