// Watches: what a stream says, and when.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "test/apiserver/test_client.h"

namespace shunt::test_api {
namespace {

using namespace std::chrono_literals;

constexpr const char* kMerge = "application/merge-patch+json";

std::string version(TestServer& server) { return std::to_string(server->store().version()); }

void patch(TestServer& server, const std::string& name, const std::string& body) {
  const Reply reply = server.call(
      "PATCH", "/api/v1/namespaces/shop/services/" + name, body, {{"Content-Type", kMerge}});
  REQUIRE(reply.code == 200);
}

}  // namespace

TEST_CASE("a watch from a version tells what happened since and what happens next") {
  TestServer server;
  const std::string start = version(server);
  server.apply(service("a"));
  LineClient watch(server, "/api/v1/services?watch=true&resourceVersion=" + start);
  CHECK(summary(watch.event()) == "ADDED shop/a");
  CHECK_THAT(watch.head(), Catch::Matchers::ContainsSubstring("Transfer-Encoding: chunked"));
  patch(server, "a", R"({"metadata":{"labels":{"x":"y"}}})");
  const Json modified = watch.event();
  CHECK(summary(modified) == "MODIFIED shop/a");
  CHECK(modified["object"]["metadata"]["resourceVersion"] == version(server));
  CHECK(modified["object"].begin().key() == "kind");
  server.call("DELETE", "/api/v1/namespaces/shop/services/a");
  const Json deleted = watch.event();
  CHECK(summary(deleted) == "DELETED shop/a");
  CHECK(deleted["object"]["metadata"]["resourceVersion"] == version(server));
}

TEST_CASE("an object that stops matching is deleted in its last matching shape") {
  TestServer server;
  server.apply(service("a"));
  LineClient labels(
      server, "/api/v1/services?watch=1&labelSelector=!skip&resourceVersion=" + version(server));
  LineClient fields(
      server,
      "/api/v1/services?watch=1&fieldSelector=spec.clusterIP!%3DNone&resourceVersion=" +
          version(server));
  patch(server, "a", R"({"metadata":{"labels":{"skip":"yes"}}})");
  const Json gone = labels.event();
  CHECK(summary(gone) == "DELETED shop/a");
  CHECK_FALSE(gone["object"]["metadata"].contains("labels"));
  CHECK(gone["object"]["metadata"]["resourceVersion"] == version(server));
  CHECK(summary(fields.event()) == "MODIFIED shop/a");
  patch(server, "a", R"({"metadata":{"labels":null}})");
  CHECK(summary(labels.event()) == "ADDED shop/a");
  CHECK(summary(fields.event()) == "MODIFIED shop/a");
  patch(server, "a", R"({"spec":{"clusterIP":"None"}})");
  CHECK(summary(fields.event()) == "DELETED shop/a");
}

TEST_CASE("a streaming list ends with the recorded bookmark") {
  TestServer server;
  server.apply(recording("list-services.json.body"));
  LineClient watch(
      server,
      "/api/v1/services?watch=true&allowWatchBookmarks=true&sendInitialEvents=true"
      "&resourceVersionMatch=NotOlderThan");
  for (int i = 0; i < 7; ++i) {
    CHECK(watch.event()["type"] == "ADDED");
  }
  CHECK(
      watch.line() ==
      R"({"type":"BOOKMARK","object":{"kind":"Service","apiVersion":"v1","metadata":)"
      R"({"resourceVersion":")" +
          version(server) +
          R"(","annotations":{"k8s.io/initial-events-end":"true"}},"spec":{},)"
          R"("status":{"loadBalancer":{}}}})");
  server.apply(service("later"));
  CHECK(summary(watch.event()) == "ADDED shop/later");
}

TEST_CASE("streaming lists are refused as the real server refuses them") {
  TestServer server;
  const std::string streaming = "/api/v1/services?watch=true&sendInitialEvents=true";
  CHECK(server.get(streaming).code == 422);
  CHECK(server.get("/api/v1/services?watch=true&resourceVersionMatch=NotOlderThan").code == 422);
  CHECK(
      server.get(streaming + "&resourceVersionMatch=NotOlderThan&resourceVersion=9999").code ==
      504);
  TestServer old([](ServerOptions& options) { options.streaming_lists = false; });
  const Reply refused = old.get(streaming + "&resourceVersionMatch=NotOlderThan");
  CHECK(refused.code == 422);
  CHECK(refused.json()["details"]["causes"][0]["field"] == "sendInitialEvents");
}

TEST_CASE(
    "a bookmark that a change asks for comes at once, to watches of other resources as well") {
  TestServer server;
  server.apply(service("a"));
  const std::string nodes = "/api/v1/nodes?watch=true&resourceVersion=" + version(server);
  LineClient watch(server, nodes + "&allowWatchBookmarks=true");
  LineClient without(server, nodes);
  server.apply(service("b"), "?bookmark=true");
  const Json bookmark = watch.event();
  CHECK(summary(bookmark) == "BOOKMARK");
  CHECK(bookmark["object"]["metadata"]["resourceVersion"] == version(server));
  // One that begins later has the version already, one that did not ask gets none.
  LineClient later(
      server,
      "/api/v1/nodes?watch=true&allowWatchBookmarks=true&resourceVersion=" + version(server));
  server.apply("kind: Node\nmetadata: {name: n}\n");
  CHECK(later.event()["type"] == "ADDED");
  CHECK(without.event()["type"] == "ADDED");
}

TEST_CASE("bookmarks come in time and before the end") {
  TestServer server([](ServerOptions& options) { options.bookmark_interval_ms = 300; });
  server.apply(service("a"));
  LineClient watch(
      server,
      "/api/v1/services?watch=true&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion=" +
          version(server));
  server.apply("kind: Node\nmetadata: {name: n}\n");  // moves the version of everybody
  const Json bookmark = watch.event();
  CHECK(summary(bookmark) == "BOOKMARK");
  CHECK(bookmark["object"]["metadata"]["resourceVersion"] == version(server));
  int more = 0;
  while (summary(watch.event()) == "BOOKMARK") {
    ++more;
  }
  CHECK(more >= 2);
  CHECK(watch.finish() == LineClient::State::Ended);

  LineClient silent(
      server, "/api/v1/services?watch=true&timeoutSeconds=1&resourceVersion=" + version(server));
  CHECK_FALSE(silent.line().has_value());
  CHECK(silent.finish() == LineClient::State::Ended);
}

TEST_CASE("a version older than the log is an ERROR event of the recorded shape") {
  TestServer server([](ServerOptions& options) { options.log_size = 2; });
  server.apply(service("a") + service("b") + service("c"));
  LineClient watch(server, "/api/v1/services?watch=true&resourceVersion=1");
  const std::string recorded = recording("error-410-watch.json.body");
  const std::size_t oldest = recorded.find("389");
  CHECK(*watch.line() + "\n" == std::string(recorded).replace(oldest, 3, "2"));
  CHECK(watch.finish() == LineClient::State::Ended);

  SECTION("a running watch does not mind that old versions are forgotten") {
    LineClient running(server, "/api/v1/services?watch=true&resourceVersion=" + version(server));
    server.apply(service("d"));
    CHECK(summary(running.event()) == "ADDED shop/d");
    server.apply("kind: Node\nmetadata: {name: n}\n");
    const std::string before = version(server);
    server.apply(service("e"));
    CHECK(summary(running.event()) == "ADDED shop/e");
    server.call("POST", "/_test/forget");
    server.apply(service("f"));
    CHECK(summary(running.event()) == "ADDED shop/f");
    LineClient late(server, "/api/v1/services?watch=true&resourceVersion=" + before);
    CHECK(summary(late.event()) == "ERROR 410");
  }
}

TEST_CASE("old states can be listed while the log goes back to them") {
  TestServer server([](ServerOptions& options) { options.log_size = 4; });
  std::vector<std::string> versions;
  const auto list_at = [&](const std::string& at) {
    return server.get("/api/v1/services?resourceVersionMatch=Exact&resourceVersion=" + at);
  };
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    server.apply(service(name));
    versions.push_back(version(server));
    server.apply(std::string("kind: Node\nmetadata: {name: ") + name + "}\n");
    CHECK(server.get("/api/v1/services").json()["items"].size() == versions.size());
  }
  server.call("DELETE", "/api/v1/namespaces/shop/services/a");
  CHECK(server.get("/api/v1/services").json()["items"].size() == 5);
  for (int round = 0; round < 2; ++round) {
    CHECK(list_at(versions[5]).json()["items"].size() == 6);
    CHECK(list_at(versions[3]).json()["items"].size() == 4);
    CHECK(list_at(versions[4]).json()["items"].size() == 5);
    CHECK(list_at(versions[4]).json()["items"][0]["metadata"]["name"] == "a");
    CHECK(list_at(versions[1]).code == 410);
    CHECK(server.get("/api/v1/services").json()["items"][0]["metadata"]["name"] == "b");
  }
}

TEST_CASE("events reach a watch within a millisecond or so") {
  TestServer server;
  LineClient watch(server, "/api/v1/services?watch=true&resourceVersion=" + version(server));
  server.apply(service("warm-up"));
  CHECK(summary(watch.event()) == "ADDED shop/warm-up");
  std::vector<std::chrono::steady_clock::duration> delays;
  for (int i = 0; i < 50; ++i) {
    Json object = Json::object();
    object["metadata"] = {{"name", "s" + std::to_string(i)}, {"namespace", "shop"}};
    const auto begin = std::chrono::steady_clock::now();
    (void)server->store().change(0, "shop/s", [&](const ObjectPtr&, std::uint64_t next) {
      return make_object(object, next);
    });
    REQUIRE(watch.line().has_value());
    delays.push_back(std::chrono::steady_clock::now() - begin);
  }
  std::ranges::sort(delays);
  CHECK(delays[25] < 20ms);  // 0.1 ms on a quiet machine: room for busy ones and sanitizers
}

TEST_CASE("a restart keeps objects and versions") {
  const bool forget = GENERATE(false, true);
  TestServer server([&](ServerOptions& options) {
    options.state = options.pki + "-state";
    options.forget_log_after_restart = forget;
  });
  server.apply(service("a") + service("b"));
  const std::string list = server.get("/api/v1/services").body;
  const std::string before = version(server);
  server.apply(service("c"));
  server.call("DELETE", "/api/v1/namespaces/shop/services/c");
  const std::string last = version(server);
  const std::string client = server.dir() + "/pki/client";
  LineClient cut(server, "/api/v1/services?watch=true&resourceVersion=" + last);
  REQUIRE(server.tls_get("/api/v1/services", client).code == 200);

  server.restart();

  CHECK(cut.finish() == LineClient::State::Cut);
  CHECK(version(server) == last);
  CHECK(server.tls_get("/api/v1/services", client).code == 200);
  CHECK(server.get("/api/v1/services").json()["items"] == Json::parse(list)["items"]);
  LineClient old(server, "/api/v1/services?watch=true&resourceVersion=" + before);
  CHECK(summary(old.event()) == (forget ? "ERROR 410" : "ADDED shop/c"));
  LineClient current(server, "/api/v1/services?watch=true&resourceVersion=" + last);
  server.apply(service("d"));
  CHECK(summary(current.event()) == "ADDED shop/d");
}

}  // namespace shunt::test_api
