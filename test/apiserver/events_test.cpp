// Events, as agents write them.
#include <catch2/catch_test_macros.hpp>

#include "test/apiserver/test_client.h"

namespace shunt::test_api {
namespace {

const std::string kEvents = "/apis/events.k8s.io/v1/namespaces/shop/events";

Json event() {
  return Json::parse(R"({
    "metadata": {"name": "web.1", "namespace": "shop"}, "eventTime": "2026-11-30T06:00:00.000001Z",
    "reportingController": "agent", "reportingInstance": "agent-1", "action": "Plan",
    "reason": "SetAside", "type": "Warning", "note": "n",
    "regarding": {"kind": "Service", "namespace": "shop", "name": "web"}})");
}

TEST_CASE("an Event is created, its series grows, and a GET shows it") {
  TestServer server;
  REQUIRE(server.call("POST", kEvents, event().dump()).code == 201);
  CHECK(server.call("POST", kEvents, event().dump()).code == 409);
  const Headers strategic{{"Content-Type", "application/strategic-merge-patch+json"}};
  const std::string patch =
      R"({"series":{"count":2,"lastObservedTime":"2026-11-30T06:00:01.000001Z"}})";
  REQUIRE(server.call("PATCH", kEvents + "/web.1", patch, strategic).code == 200);
  CHECK(server.call("PATCH", kEvents + "/gone", patch, strategic).code == 404);
  const Json list = server.get("/apis/events.k8s.io/v1/events").json();
  REQUIRE(list["items"].size() == 1);
  CHECK(list["items"][0]["series"]["count"] == 2);
  CHECK(list["items"][0]["reason"] == "SetAside");
}

TEST_CASE("what the real server refuses of an Event is refused") {
  TestServer server;
  const auto code = [&](const std::string& change) {
    Json changed = event();
    changed.merge_patch(Json::parse(change));
    return server.call("POST", kEvents, changed.dump()).code;
  };
  for (const char* field :
       {"reportingController", "reportingInstance", "action", "reason", "eventTime", "type"}) {
    CAPTURE(field);
    CHECK(code(std::string("{\"") + field + "\":null}") == 422);
  }
  CHECK(code(R"({"regarding":{"namespace":"other"}})") == 422);
  CHECK(code(R"({"regarding":{"namespace":null}})") == 422);
  CHECK(code(R"({"series":{"count":1,"lastObservedTime":"2026-11-30T06:00:01Z"}})") == 422);
  CHECK(code(R"({"note":")" + std::string(1025, 'x') + "\"}") == 422);
  CHECK(code(R"({"action":")" + std::string(129, 'x') + "\"}") == 422);
  REQUIRE(code("{}") == 201);
  const Headers merge{{"Content-Type", "application/merge-patch+json"}};
  CHECK(server.call("PATCH", kEvents + "/web.1", R"({"note":"other"})", merge).code == 422);
}

}  // namespace
}  // namespace shunt::test_api
