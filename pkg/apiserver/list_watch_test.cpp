// Every rule of spec/api-objects.md §8, over a scripted transport: no socket, no thread, no clock.
#include "apiserver/list_watch.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <fstream>
#include <iterator>

#include "apiserver/testing/list_watch_world.h"

namespace shunt::apiserver {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the script is what this file is
                          // about
using kube::Service;

std::string object(const std::string& name, int version) {
  return R"({"metadata":{"name":")" + name + R"(","namespace":"ns","resourceVersion":")" +
         std::to_string(version) + R"("},"spec":{"clusterIP":"10.0.0.1"}})";
}
std::string event(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}
std::string added(const std::string& name, int version) {
  return event("ADDED", object(name, version));
}
std::string modified(const std::string& name, int version) {
  return event("MODIFIED", object(name, version));
}
std::string deleted(const std::string& name, int version) {
  return event("DELETED", object(name, version));
}
std::string bookmark(int version, bool end = false) {
  const std::string annotations =
      end ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "";
  return event(
      "BOOKMARK",
      R"({"metadata":{"resourceVersion":")" + std::to_string(version) + R"(")" + annotations +
          "}}");
}
std::string status(int code, const std::string& reason, const std::string& details = "{}") {
  return R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":"m","reason":")" +
         reason + R"(","details":)" + details + R"(,"code":)" + std::to_string(code) + "}";
}
std::string error_event(int code, const std::string& reason) {
  return event("ERROR", status(code, reason));
}
std::string page(int version, const std::string& token, const Lines& objects) {
  std::string items;
  for (const std::string& item : objects) {
    items += (items.empty() ? "" : ",") + item;
  }
  return R"({"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":")" +
         std::to_string(version) + R"(","continue":")" + token + R"("},"items":[)" + items + "]}";
}
const std::string& too_large() {
  static const std::string text = status(
      504,
      "Timeout",
      R"({"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]})");
  return text;
}

TEST_CASE("a streaming list replaces once, at its end bookmark, and goes on live") {
  const Outcome got = play({ok(
      {added("b", 7),
       added("a", 5),
       bookmark(9, true),
       modified("a", 10),
       deleted("b", 11),
       bookmark(20),
       added("c", 21)})});
  CHECK(
      got.lines == Lines{
                       "watchlist rv=-",
                       "replace ns/a@5 ns/b@7",
                       "put ns/a@10",
                       "del ns/b",
                       "put ns/c@21",
                       "watch rv=21"});
  CHECK(got.status.synced);
  CHECK(got.status.resource_version == "21");
  CHECK(got.status.lists == 1);
  CHECK(got.status.watches == 2);
}

TEST_CASE("a streaming list asks for what it is") {
  const Outcome got = play({});
  REQUIRE(got.requests.size() == 1);
  CHECK(
      got.requests[0].target ==
      "/api/v1/services?watch=true&allowWatchBookmarks=true"
      "&labelSelector=%21service.kubernetes.io%2Fservice-proxy-name"
      "&fieldSelector=spec.clusterIP%21%3DNone"
      "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
      "&timeoutSeconds=300&timeout=5m0s");
  CHECK_FALSE(got.status.synced);
}

TEST_CASE("changes during a streaming list are applied to what it collects") {
  CHECK(
      lines_of({ok(
          {added("a", 1), added("b", 2), modified("a", 3), deleted("b", 4), bookmark(5, true)})}) ==
      Lines{"watchlist rv=-", "replace ns/a@3", "watch rv=5"});
}

TEST_CASE("an empty cluster is a complete list") {
  CHECK(lines_of({ok({bookmark(5, true)})}) == Lines{"watchlist rv=-", "replace", "watch rv=5"});
}

TEST_CASE("a streaming list that breaks off replaces nothing and trusts no version") {
  // Long enough to try again at once.
  CHECK(lines_of({cut({added("a", 5)}, ECONNRESET)}) == Lines{"watchlist rv=-", "watchlist rv=-"});
  // Three times in a row: perhaps it never comes, and a classic list is better than none.
  CHECK(
      lines_of(
          {ok({added("a", 5)}), ok({added("a", 5)}), ok({added("a", 5)}), ok({page(7, "", {})})}) ==
      Lines{
          "watchlist rv=-",
          "watchlist rv=-",
          "watchlist rv=-",
          "list rv=0 limit=500",
          "replace",
          "watch rv=7"});
  // A bookmark that is not the end one is no end.
  CHECK(lines_of({ok({added("a", 5), bookmark(6)})}) == Lines{"watchlist rv=-", "watchlist rv=-"});
  // Events within a second and then nothing: try again, but not in a tight loop.
  CHECK(
      lines_of({cut({added("a", 5)}, ECONNRESET, Millis(10))}) ==
      Lines{"watchlist rv=-", "wait 800", "watchlist rv=-"});
}

TEST_CASE("what cannot stream a list is asked for a classic one in the same cycle") {
  struct Case {
    const char* name;
    Answer answer;
  };
  for (const Case& c : std::vector<Case>{
           {"sendInitialEvents is invalid", refused(422, status(422, "Invalid"))},
           {"bad request in words", refused(400, "what?")},
           {"forbidden", refused(403, status(403, "Forbidden"))},
           {"unauthorized", refused(401, status(401, "Unauthorized"))},
           {"server error", refused(500, status(500, "InternalError"))},
           {"error event", ok({error_event(500, "InternalError")})},
           {"closed at once without an event", ok({}, Millis(10))},
           {"malformed frame", ok({"{\"type\":\"ADDED\"} garbage"})},
           {"unknown event type", ok({event("RENAMED", object("a", 1))})},
           {"not JSON", ok({"<html>"})}}) {
    DYNAMIC_SECTION(c.name) {
      CHECK(
          lines_of({c.answer, ok({page(7, "", {object("a", 5)})})}) ==
          Lines{"watchlist rv=-", "list rv=0 limit=500", "replace ns/a@5", "watch rv=7"});
    }
  }
}

TEST_CASE("streaming is tried again in the next cycle, from the version that is known") {
  CHECK(
      lines_of(
          {refused(422, status(422, "Invalid")),
           ok({page(7, "", {})}),
           ok({error_event(410, "Expired")})}) == Lines{
                                                      "watchlist rv=-",
                                                      "list rv=0 limit=500",
                                                      "replace",
                                                      "watch rv=7",
                                                      "wait 800",
                                                      "watchlist rv=7"});
}

TEST_CASE("connection refused and 429 are waited out without a relist") {
  CHECK(
      lines_of(
          {no_answer(ECONNREFUSED),
           refused(429, status(429, "TooManyRequests")),
           ok({bookmark(5, true)}),
           no_answer(ECONNREFUSED),
           refused(429, "slow down"),
           ok({error_event(429, "TooManyRequests")}),
           ok({added("a", 8)})}) == Lines{
                                        "watchlist rv=-",
                                        "wait 800",
                                        "watchlist rv=-",
                                        "wait 1600",
                                        "watchlist rv=-",
                                        "replace",
                                        "watch rv=5",
                                        "wait 3200",
                                        "watch rv=5",
                                        "wait 6400",
                                        "watch rv=5",
                                        "wait 12800",
                                        "watch rv=5",
                                        "put ns/a@8",
                                        "watch rv=8"});
}

TEST_CASE("a version that is gone or not reached makes a streaming list start from none") {
  for (const Answer& answer :
       {refused(410, status(410, "Expired")),
        refused(410, status(410, "Gone")),
        refused(410, "gone"),
        refused(504, too_large()),
        ok({error_event(410, "Expired")})}) {
    CHECK(
        lines_of(
            {ok({bookmark(5, true), error_event(410, "Expired")}),
             answer,
             ok({added("a", 1), bookmark(9, true)})}) == Lines{
                                                             "watchlist rv=-",
                                                             "replace",
                                                             "wait 800",
                                                             "watchlist rv=5",
                                                             "watchlist rv=-",
                                                             "replace ns/a@1",
                                                             "watch rv=9"});
  }
}

TEST_CASE("a server that calls even no version expired does not make a loop") {
  CHECK(
      lines_of({refused(410, status(410, "Expired")), ok({page(3, "", {})})}) ==
      Lines{"watchlist rv=-", "list rv=0 limit=500", "replace", "watch rv=3"});
}

TEST_CASE("410 in a live watch leaves what is known in force until the new list is complete") {
  CHECK(
      lines_of(
          {ok({added("a", 1), bookmark(5, true), error_event(410, "Expired")}),
           cut({added("b", 8)}, ECONNRESET),
           ok({added("b", 8), bookmark(9, true)})}) == Lines{
                                                           "watchlist rv=-",
                                                           "replace ns/a@1",
                                                           "wait 800",
                                                           "watchlist rv=5",
                                                           "watchlist rv=5",
                                                           "replace ns/b@8",
                                                           "watch rv=9"});
}

TEST_CASE("a watch that ends is opened again from the last version, without a list or a delay") {
  struct Case {
    const char* name;
    Answer answer;
    const char* next;
  };
  const Answer first = ok({bookmark(5, true)});
  for (const Case& c : std::vector<Case>{
           {"server's timeout", ok({}), "watch rv=5"},
           {"bookmark only", ok({bookmark(6)}, Millis(10)), "watch rv=6"},
           {"connection reset", cut({bookmark(6)}, ECONNRESET), "watch rv=6"},
           {"stalled", cut({bookmark(6)}, ETIMEDOUT), "watch rv=6"},
           {"stalled before any event", cut({}, ETIMEDOUT), "watch rv=5"},
           {"cut inside an object",
            cut({bookmark(6) + added("a", 7).substr(0, 30)}, ECONNRESET),
            "watch rv=6"}}) {
    DYNAMIC_SECTION(c.name) {
      CHECK(
          lines_of({first, c.answer}) == Lines{"watchlist rv=-", "replace", "watch rv=5", c.next});
    }
  }
}

TEST_CASE("a live watch that fails otherwise leaves the cycle") {
  struct Case {
    const char* name;
    Answer answer;
  };
  const Answer first = ok({bookmark(5, true)});
  for (const Case& c : std::vector<Case>{
           {"less than a second and no event", ok({}, Millis(999))},
           {"expired", ok({error_event(410, "Expired")})},
           {"gone", ok({error_event(410, "Gone")})},
           {"gone without a reason", ok({error_event(410, "")})},
           {"internal error", ok({error_event(500, "InternalError")})},
           {"other error", ok({error_event(504, "Timeout")})},
           {"expired when opening", refused(410, status(410, "Expired"))},
           {"server error when opening", refused(503, "unavailable")},
           {"forbidden", refused(403, status(403, "Forbidden"))},
           {"unauthorized", refused(401, status(401, "Unauthorized"))},
           {"malformed frame", ok({"}"})},
           {"unreachable", no_answer(EHOSTUNREACH)},
           {"certificate refused", no_answer(0)}}) {
    DYNAMIC_SECTION(c.name) {
      CHECK(
          lines_of({first, c.answer}) ==
          Lines{"watchlist rv=-", "replace", "watch rv=5", "wait 800", "watchlist rv=5"});
    }
  }
}

TEST_CASE("Retry-After sends the same request again after that time, ten times at most") {
  using std::chrono::seconds;
  CHECK(
      lines_of(
          {refused(429, "wait", seconds(3)),
           refused(503, "wait", seconds(2)),
           ok({bookmark(5, true)})}) == Lines{
                                            "watchlist rv=-",
                                            "wait 3000",
                                            "watchlist rv=-",
                                            "wait 2000",
                                            "watchlist rv=-",
                                            "replace",
                                            "watch rv=5"});
  const std::deque<Answer> always(11, refused(429, "wait", seconds(86400)));
  Lines want{"watchlist rv=-"};
  for (int i = 0; i < 10; ++i) {
    want.insert(want.end(), {"wait 30000", "watchlist rv=-"});
  }
  want.insert(want.end(), {"wait 800", "watchlist rv=-"});
  CHECK(lines_of(always) == want);
}

TEST_CASE("a connection that breaks before the answer is tried again in place") {
  const Answer first = ok({bookmark(5, true)});
  CHECK(
      lines_of({first, no_answer(ECONNRESET), no_answer(ETIMEDOUT), ok({added("a", 6)})}) ==
      Lines{
          "watchlist rv=-",
          "replace",
          "watch rv=5",
          "wait 1000",
          "watch rv=5",
          "wait 1000",
          "watch rv=5",
          "put ns/a@6",
          "watch rv=6"});
  // It counts as a watch that gave nothing, and lasted: no relist.
  std::deque<Answer> script(11, no_answer(ECONNRESET));
  script.push_front(first);
  const Lines got = lines_of(script);
  CHECK(got.size() == 2 + 11 + 10 + 1);
  CHECK(got.back() == "watch rv=5");
  CHECK(got[got.size() - 2] == "watch rv=5");
}

TEST_CASE("a classic list pages, and only its first page names a version") {
  CHECK(
      classic(
          {ok({page(7, "t/1", {object("a", 1)})}),
           ok({page(7, "t2", {object("b", 2)})}),
           ok({page(7, "", {object("c", 3)})}),
           ok({added("d", 8)})},
          1) == Lines{
                    "list rv=0 limit=1",
                    "list rv=- limit=1 continue=t%2F1",
                    "list rv=- limit=1 continue=t2",
                    "replace ns/a@1 ns/b@2 ns/c@3",
                    "watch rv=7",
                    "put ns/d@8",
                    "watch rv=8"});
}

TEST_CASE("a relist names the last version, with a limit only where lists are paged") {
  const Answer gone = ok({error_event(410, "Expired")});
  CHECK(
      classic({ok({page(7, "", {})}), gone}) ==
      Lines{"list rv=0 limit=500", "replace", "watch rv=7", "wait 800", "list rv=7"});
  CHECK(
      classic({ok({page(7, "t", {})}), ok({page(7, "", {})}), gone}) ==
      Lines{
          "list rv=0 limit=500",
          "list rv=- limit=500 continue=t",
          "replace",
          "watch rv=7",
          "wait 800",
          "list rv=7 limit=500"});
}

TEST_CASE("a follow-up page that expired makes one whole list") {
  CHECK(
      classic(
          {ok({page(7, "t", {object("a", 1)})}),
           refused(410, status(410, "Expired")),
           ok({page(9, "", {object("b", 2)})})}) == Lines{
                                                        "list rv=0 limit=500",
                                                        "list rv=- limit=500 continue=t",
                                                        "list rv=0",
                                                        "replace ns/b@2",
                                                        "watch rv=9"});
}

TEST_CASE("a classic list at a version that is gone or not reached asks for none at once") {
  for (const Answer& answer : {refused(410, status(410, "Expired")), refused(504, too_large())}) {
    CHECK(
        classic(
            {ok({page(7, "", {object("a", 1)})}),
             ok({error_event(410, "Expired")}),
             answer,
             ok({page(9, "", {})})}) == Lines{
                                            "list rv=0 limit=500",
                                            "replace ns/a@1",
                                            "watch rv=7",
                                            "wait 800",
                                            "list rv=7",
                                            "list rv=- limit=500",
                                            "replace",
                                            "watch rv=9"});
  }
}

TEST_CASE("a classic list that fails replaces nothing") {
  struct Case {
    const char* name;
    Answer answer;
  };
  for (const Case& c : std::vector<Case>{
           {"cut", cut({page(7, "", {}).substr(0, 20)}, ECONNRESET)},
           {"not JSON", ok({"<html>"})},
           {"not a list", ok({"{}"})},
           {"no version", ok({R"({"kind":"ServiceList","metadata":{},"items":[]})"})},
           {"refused", no_answer(ECONNREFUSED)},
           {"forbidden", refused(403, status(403, "Forbidden"))}}) {
    DYNAMIC_SECTION(c.name) {
      CHECK(classic({c.answer}) == Lines{"list rv=0 limit=500", "wait 800", "list rv=0 limit=500"});
    }
  }
}

TEST_CASE("whoever wants notices hears once of an object that cannot be decoded") {
  const std::string bad =
      R"({"metadata":{"name":"bad","namespace":"ns","uid":"u","resourceVersion":"8"},"spec":"none"})";
  std::vector<kube::Notice> notices;
  ReflectorOptions options;
  options.notices = [&](const kube::Notice& notice) { notices.push_back(notice); };
  const Lines once = {event("ADDED", bad), bookmark(9, true), event("MODIFIED", bad)};
  const Outcome got =
      play({cut(once, ECONNRESET, Millis(1)), refused(410, "gone"), ok(once)}, options);
  CHECK(got.status.decode_errors >= 3);
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].object == kube::ObjectKey{"ns", "bad"});
  CHECK(notices[0].uid == "u");
  CHECK(notices[0].reason == "CannotRead");
}

TEST_CASE("an object that cannot be decoded loses only itself") {
  const std::string bad =
      R"({"metadata":{"name":"bad","namespace":"ns","resourceVersion":"8"},"spec":"none"})";
  SECTION("in a streaming list") {
    const Outcome got = play({ok({event("ADDED", bad), added("a", 1), bookmark(9, true)})});
    CHECK(got.lines == Lines{"watchlist rv=-", "replace ns/a@1", "watch rv=9"});
    CHECK(got.status.decode_errors == 1);
  }
  SECTION("live, the version moves on and the object that was known stays") {
    const Outcome got = play({ok({added("bad", 1), bookmark(5, true), event("MODIFIED", bad)})});
    CHECK(got.lines == Lines{"watchlist rv=-", "replace ns/bad@1", "watch rv=8"});
    CHECK(got.status.decode_errors == 1);
  }
  SECTION("its deletion is understood by its name") {
    CHECK(
        lines_of({ok({added("bad", 1), bookmark(5, true), event("DELETED", bad)})}) ==
        Lines{"watchlist rv=-", "replace ns/bad@1", "del ns/bad", "watch rv=8"});
  }
  SECTION("in a classic list") {
    CHECK(
        classic({ok({page(7, "", {bad, object("a", 1)})})}) ==
        Lines{"list rv=0 limit=500", "replace ns/a@1", "watch rv=7"});
  }
}

TEST_CASE("where the pieces of a stream are cut makes no difference") {
  const std::string whole =
      added("a", 1) + bookmark(5, true) + modified("a", 6) + deleted("a", 7) + bookmark(8);
  const Lines want = lines_of({ok({whole})});
  for (std::size_t size = 1; size < 20; ++size) {
    Lines pieces;
    for (std::size_t i = 0; i < whole.size(); i += size) {
      pieces.push_back(whole.substr(i, size));
    }
    // The mailbox coalesces what came in one piece; compare what the reader ends with.
    const Lines got = lines_of({ok(pieces)});
    CHECK(got.front() == want.front());
    CHECK(got.back() == want.back());
    CHECK(std::ranges::find(got, "del ns/a") != got.end());
  }
}

TEST_CASE("the server is asked to end a watch between one and two times the minimum") {
  World world;
  ListWatch<Service> machine(
      {}, world, world, [] { return 0.999; }, world.outbox);
  machine.run();
  CHECK(parameter(world.requests[0].target, "timeoutSeconds") == "599");
  CHECK(parameter(world.requests[0].target, "timeout") == "9m59s");
}

TEST_CASE("each byte of an answer is contact") {
  World world;
  world.script = {ok({bookmark(5, true)})};
  ListWatch<Service> machine(
      {}, world, world, [] { return 0.0; }, world.outbox);
  const auto start = world.now();
  machine.run();
  CHECK(machine.status().last_contact == start);
}

std::string recording(const std::string& name) {
  std::ifstream file(std::string(SHUNT_SOURCE_DIR) + "/test/recordings/" + name);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("a real server's streams are understood") {
  const Outcome streamed = play({ok({recording("watchlist-services.json.body")})});
  CHECK(streamed.status.synced);
  CHECK(streamed.status.decode_errors == 0);
  CHECK(streamed.lines.back() == "watch rv=804");

  ReflectorOptions options;
  options.streaming_lists = false;
  const Outcome listed = play(
      {ok({recording("list-services-page1.json.body")}),
       ok({recording("list-services-page2.json.body")}),
       ok({page(804, "", {})}),
       ok({recording("error-410-watch.json.body")})},
      options);
  CHECK(listed.status.synced);
  CHECK(listed.lines.back() == "list rv=804 limit=500");
  CHECK(listed.lines[3].starts_with("replace default/kubernetes@206 shop/db@227 shop/lb@244 "));

  const Outcome watched = play(
      {ok({recording("list-before-watch-services.json.body")}),
       ok({recording("watch-services.json.body")})},
      options);
  CHECK(watched.status.decode_errors == 0);
  CHECK(watched.lines.size() > 4);
}

TEST_CASE("a real server's errors are understood") {
  const auto kind = [](int code, const char* name) {
    return classify_answer(code, recording(name), std::nullopt).failure;
  };
  CHECK(kind(401, "error-401.json.body") == ApiFailure::Unauthorized);
  CHECK(kind(403, "error-403.json.body") == ApiFailure::Forbidden);
  CHECK(kind(403, "error-403-secrets.json.body") == ApiFailure::Forbidden);
  CHECK(kind(404, "error-404.json.body") == ApiFailure::Other);
  CHECK(kind(504, "error-future-rv.json.body") == ApiFailure::TooLargeVersion);
}

}  // namespace
}  // namespace shunt::apiserver
