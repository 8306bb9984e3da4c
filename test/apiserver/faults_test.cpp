// Faults: each does to a client what its name says, for as long as it was asked to.
#include <catch2/catch_test_macros.hpp>

#include "test/apiserver/proto_tree.h"
#include "test/apiserver/test_client.h"

namespace shunt::test_api {
namespace {

using namespace std::chrono_literals;

std::string version(TestServer& server) { return std::to_string(server->store().version()); }

std::string watch_target(TestServer& server) {
  return "/api/v1/services?watch=true&resourceVersion=" + version(server);
}

}  // namespace

TEST_CASE("status faults count down and match resource and verb") {
  TestServer server;
  server.faults(R"([{"kind":"status","code":429,"retryAfter":7,"text":"busy",)"
                R"("match":{"resource":"services","verb":"list","remaining":2}}])");
  CHECK(server.get("/api/v1/nodes").code == 200);
  const Reply busy = server.get("/api/v1/services");
  CHECK(busy.code == 429);
  CHECK(busy.headers.at("Retry-After") == "7");
  CHECK(busy.json()["message"] == "busy");
  CHECK(busy.json()["reason"] == "TooManyRequests");
  CHECK(server.get("/api/v1/services").code == 429);
  CHECK(server.get("/api/v1/services").code == 200);

  server.faults(R"([{"kind":"status","code":503}])");
  CHECK(server.get("/api/v1/nodes").code == 503);
  server.call("DELETE", "/_test/faults");
  CHECK(server.get("/api/v1/nodes").code == 200);
  CHECK(server.call("PUT", "/_test/faults", R"([{"kind":"nonsense"}])").code == 400);
  CHECK(server.call("PUT", "/_test/faults", R"([{"kind":"cut","bytes":"many"}])").code == 400);
}

TEST_CASE("a stall sends headers and then nothing until it is lifted") {
  TestServer server;
  server.apply(service("a"));
  server.faults(R"([{"kind":"stall","match":{"verb":"list"}}])");
  LineClient list(server, "/api/v1/services");
  CHECK_FALSE(list.line(200ms).has_value());
  CHECK(list.head().starts_with("HTTP/1.1 200 OK"));
  server.call("DELETE", "/_test/faults");
  CHECK(list.event()["items"].size() == 1);
}

TEST_CASE("a live stall holds back open watches") {
  TestServer server;
  LineClient watch(server, watch_target(server));
  server.apply(service("a"));
  CHECK(summary(watch.event()) == "ADDED shop/a");
  server.faults(R"([{"kind":"stall","live":true}])");
  // The watch may have been on its way to wait: the first event after the fault can still pass.
  server.apply(service("b"));
  const bool passed = watch.line(200ms).has_value();
  server.apply(service("c"));
  CHECK_FALSE(watch.line(200ms).has_value());
  server.call("DELETE", "/_test/faults");
  if (!passed) {
    CHECK(summary(watch.event()) == "ADDED shop/b");
  }
  CHECK(summary(watch.event()) == "ADDED shop/c");
}

TEST_CASE("a cut ends the connection in the middle of an object") {
  TestServer server;
  server.apply(recording("list-services.json.body"));
  SECTION("of a list") {
    server.faults(R"([{"kind":"cut","bytes":5000,"match":{"remaining":1}}])");
    LineClient list(server, "/api/v1/services");
    CHECK(list.finish() == LineClient::State::Cut);
    CHECK(list.rest().size() == 5000);
    CHECK(server.get("/api/v1/services").json()["items"].size() == 7);
  }
  SECTION("of a live watch, at the next event") {
    LineClient watch(server, watch_target(server));
    server.apply(service("a"));
    CHECK(summary(watch.event()) == "ADDED shop/a");
    server.faults(R"([{"kind":"cut","live":true,"bytes":20,"reset":true}])");
    CHECK_FALSE(watch.line(100ms).has_value());
    server.apply(service("b"));
    CHECK(watch.finish() == LineClient::State::Cut);
  }
  SECTION("of a live watch, now") {
    LineClient watch(server, watch_target(server));
    server.faults(R"([{"kind":"cut","live":true}])");
    CHECK(watch.finish() == LineClient::State::Cut);
  }
}

TEST_CASE("live watches get error events and broken frames") {
  TestServer server;
  LineClient watch(server, watch_target(server));
  SECTION("an error event ends the stream") {
    server.faults(R"([{"kind":"error-event","code":500,"match":{"resource":"services"}}])");
    CHECK(summary(watch.event()) == "ERROR 500");
    CHECK(watch.finish() == LineClient::State::Ended);
  }
  SECTION("a broken frame does not, and comes once") {
    server.faults(R"([{"kind":"malformed-json","match":{"verb":"watch"}}])");
    const auto broken = watch.line();
    REQUIRE(broken.has_value());
    CHECK(Json::parse(*broken, nullptr, false).is_discarded());
    server.apply(service("a"));
    CHECK(summary(watch.event()) == "ADDED shop/a");
  }
}

TEST_CASE("broken frames of protobuf") {
  TestServer server;
  LineClient watch(server, watch_target(server), "application/vnd.kubernetes.protobuf");
  server.apply(service("a"));
  REQUIRE(watch.frame().has_value());
  SECTION("garbage of the length it says") {
    server.faults(R"([{"kind":"malformed-protobuf"}])");
    CHECK_FALSE(parse_proto(watch.frame().value_or("")).has_value());
    server.apply(service("b"));
    CHECK(parse_proto(watch.frame().value_or("")).has_value());
  }
  SECTION("an object that is none, in a frame that is one") {
    server.faults(R"([{"kind":"malformed-protobuf","variant":"object"}])");
    const auto event = parse_proto(watch.frame().value_or(""));
    REQUIRE(event.has_value());
    CHECK(proto_bytes(*event, 1) == "MODIFIED");
    server.apply(service("b"));
    CHECK(parse_proto(watch.frame().value_or("")).has_value());
  }
  SECTION("a length that nobody believes") {
    server.faults(R"([{"kind":"malformed-protobuf","variant":"length"}])");
    CHECK_FALSE(watch.frame(300ms).has_value());
    CHECK(watch.rest().starts_with("\xff\xff\xff\xff"));
  }
  CHECK(
      server.call("PUT", "/_test/faults", R"([{"kind":"malformed-protobuf","variant":"x"}])")
          .code == 400);
}

TEST_CASE("slow bytes arrive one by one, and HTML instead of JSON") {
  TestServer server;
  server.faults(R"([{"kind":"slow","bytes":40,"delayMs":20}])");
  const auto begin = std::chrono::steady_clock::now();
  CHECK(server.get("/api/v1/services").json()["kind"] == "ServiceList");
  CHECK(std::chrono::steady_clock::now() - begin >= 40ms);
  server.faults(R"([{"kind":"wrong-content"}])");
  const Reply html = server.get("/api/v1/services");
  CHECK(html.code == 200);
  CHECK(html.headers.at("Content-Type") == "text/html");
}

TEST_CASE("refused connections are closed at accept, on TLS ports only") {
  TestServer server;
  const std::string client = server.dir() + "/pki/client";
  server.faults(R"([{"kind":"refuse","match":{"remaining":1}}])");
  CHECK(server.get("/api/v1/services").code == 200);
  CHECK(server.tls_get("/api/v1/services", client).code == 0);
  CHECK(server.tls_get("/api/v1/services", client).code == 200);
}

TEST_CASE("statistics tell what was asked") {
  TestServer server;
  LineClient watch(server, watch_target(server));
  server.apply(service("a"));
  CHECK(summary(watch.event()) == "ADDED shop/a");
  server.get("/api/v1/services?labelSelector=x");
  server.get("/api/v1/nodes/none");
  const Json stats = server.get("/_test/stats").json();
  CHECK(stats["openWatches"]["services"] == 1);
  CHECK(
      stats["requests"].dump() ==
      R"([{"verb":"get","resource":"nodes","code":404,"count":1},)"
      R"({"verb":"list","resource":"services","code":200,"count":1},)"
      R"({"verb":"watch","resource":"services","code":200,"count":1}])");
  const Json requests = server.get("/_test/requests").json();
  CHECK(requests[1]["target"] == "/api/v1/services?labelSelector=x");
}

TEST_CASE("the server says which watches have been sent everything") {
  TestServer server;
  const auto up_to_date = [&] {
    const Json watches = server.get("/_test/watches").json()["watches"];
    REQUIRE(watches.size() == 1);
    CHECK(watches[0]["resource"] == "services");
    return watches[0]["upToDate"].get<bool>();
  };
  const auto becomes_up_to_date = [&] {
    for (int tries = 0; tries < 1000; ++tries) {
      if (up_to_date()) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  };
  CHECK(server.get("/_test/watches").json()["watches"].empty());
  LineClient watch(server, watch_target(server));
  server.apply(service("a"));
  CHECK(summary(watch.event()) == "ADDED shop/a");
  CHECK(becomes_up_to_date());

  server.faults(R"([{"kind":"stall","live":true}])");
  server.apply(service("b"));  // may still pass
  (void)watch.line(200ms);
  server.apply(service("c"));
  CHECK_FALSE(watch.line(200ms).has_value());
  CHECK_FALSE(up_to_date());
  server.call("DELETE", "/_test/faults");
  CHECK(becomes_up_to_date());
}

}  // namespace shunt::test_api
