// Load on request: the verbs of the admin port, and the times that benchmarks measure from.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>
#include <thread>

#include "test/apiserver/monotonic.h"
#include "test/apiserver/test_client.h"

namespace shunt::test_api {
namespace {

using namespace std::chrono_literals;

constexpr const char* kSlices = "/apis/discovery.k8s.io/v1/endpointslices";

bool becomes(const std::function<bool()>& is) {
  for (int tries = 0; tries < 2000; ++tries) {
    if (is()) {
      return true;
    }
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

}  // namespace

TEST_CASE("the server makes load on request and says how far it is") {
  TestServer server;
  CHECK(server.get("/_test/generate").json()["running"] == false);
  CHECK(server.call("POST", "/_test/generate", "nonsense").code == 400);
  const Reply started =
      server.call("POST", "/_test/generate?wait=true", R"({"services":30,"endpoints":2})");
  CHECK(started.code == 202);
  CHECK(server.get("/api/v1/services").json()["items"].size() == 32);
  const auto is_done = [&] { return server.get("/_test/generate").json()["doing"] == "done"; };
  REQUIRE(becomes(is_done));
  CHECK(server.get("/_test/generate").json()["objects"] == 65);  // with dns, kubernetes, the CIDR

  SECTION("churn reaches the watches, one event each") {
    const std::string version = std::to_string(server->store().version());
    LineClient watch(server, std::string(kSlices) + "?watch=true&resourceVersion=" + version);
    server.call("POST", "/_test/generate", R"({"churn":{"rate":500,"seconds":0.1}})");
    for (int i = 0; i < 50; ++i) {
      CHECK_THAT(summary(watch.event()), Catch::Matchers::StartsWith("MODIFIED "));
    }
    CHECK(becomes(is_done));
    CHECK(server.get("/_test/generate").json()["events"] == 50);
  }
  SECTION("one request at a time, until it is stopped") {
    const std::string churn = R"({"churn":{"rate":10,"seconds":1000}})";
    CHECK(server.call("POST", "/_test/generate", churn).code == 202);
    CHECK(server.call("POST", "/_test/generate", churn).code == 409);
    CHECK(server.call("DELETE", "/_test/generate").json()["doing"] == "stopped");
    CHECK(server.call("POST", "/_test/generate", churn).code == 202);
  }
  SECTION("what cannot be done is an error that stays to be read") {
    server.call("POST", "/_test/generate", R"({"rolling":{"service":"no/where","seconds":1}})");
    CHECK(becomes([&] { return server.get("/_test/generate").json()["doing"] == "failed"; }));
    CHECK_THAT(
        text_at(server.get("/_test/generate").json(), "error"),
        Catch::Matchers::ContainsSubstring("no/where"));
  }
  SECTION("a second cluster takes other addresses") {
    server.call(
        "POST", "/_test/generate?wait=true", R"({"services":5,"endpoints":2,"prefix":"more"})");
    std::set<std::string> ips;
    const Json list = server.get("/api/v1/services").json();
    for (const Json& item : list["items"]) {
      ips.insert(text_at(item["spec"], "clusterIP"));
    }
    CHECK(ips.size() == 37);
  }
}

TEST_CASE("a cluster that is asked for at start is there before anybody can connect") {
  TestServer server([](ServerOptions& options) {
    options.generate = R"({"services":10,"endpoints":2,"node":"node-a"})";
  });
  CHECK(server.get(kSlices).json()["items"].size() == 12);
  CHECK(server.get("/api/v1/nodes/node-a").code == 200);
  CHECK_THROWS(TestServer([](ServerOptions& options) { options.generate = "nonsense"; }));
}

TEST_CASE("a flip tells when the watches were handed it") {
  TestServer server(
      [](ServerOptions& options) { options.generate = R"({"services":1,"endpoints":3})"; });
  const Json slice = server.get(kSlices).json()["items"].back();
  const std::string name = text_at(slice["metadata"], "name");
  const std::string body = R"({"namespace":"load-ns-0","name":")" + name + R"(","index":1)";
  const auto flip = [&](const std::string& more) {
    return server.call("POST", "/_test/flip", body + more).json();
  };
  LineClient watch(
      server,
      std::string(kSlices) +
          "?watch=true&resourceVersion=" + std::to_string(server->store().version()));
  REQUIRE(becomes([&] { return server.get("/_test/watches").json()["watches"].size() == 1; }));
  REQUIRE(becomes(
      [&] { return server.get("/_test/watches").json()["watches"][0]["upToDate"] == true; }));
  const std::int64_t before = monotonic_ns();
  const Json flipped = flip("}");
  CHECK(flipped["ready"] == false);
  CHECK(flipped["watches"] == 1);
  CHECK(flipped["sent_ns"] >= before);
  CHECK(flipped["sent_ns"] <= monotonic_ns());
  const Json event = watch.event();
  CHECK(event["object"]["metadata"]["resourceVersion"] == flipped["resourceVersion"]);
  CHECK(event["object"]["endpoints"][1]["conditions"]["ready"] == false);
  CHECK(event["object"]["endpoints"][0]["conditions"]["ready"] == true);
  CHECK(flip(R"(,"ready":true})")["ready"] == true);
  CHECK(server.call("POST", "/_test/flip", R"({"namespace":"x","name":"y"})").code == 404);
  CHECK(
      server
          .call(
              "POST",
              "/_test/flip",
              R"({"namespace":"load-ns-0","name":")" + name + R"(","index":9})")
          .code == 400);
}

TEST_CASE("writes through the admin port say when their watches were woken") {
  TestServer server;
  const auto sent = [](const Reply& reply) {
    const auto found = reply.headers.find("X-Sent-Ns");
    return found == reply.headers.end() ? std::int64_t{0} : std::stoll(found->second);
  };
  const std::int64_t before = monotonic_ns();
  const std::int64_t applied = sent(server.call("POST", "/_test/apply", service("a")));
  CHECK(applied > before);
  const std::string target = "/api/v1/namespaces/shop/services/a";
  const std::int64_t patched = sent(server.call(
      "PATCH",
      target,
      R"({"metadata":{"labels":{"a":"b"}}})",
      {{"Content-Type", "application/merge-patch+json"}}));
  CHECK(patched > applied);
  const std::int64_t put = sent(server.call("PUT", target, server.get(target).body));
  CHECK(put > patched);
  CHECK(put < monotonic_ns());
  CHECK(sent(server.get(target)) == 0);
}

}  // namespace shunt::test_api
