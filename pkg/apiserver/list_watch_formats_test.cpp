// In which formats a ListWatch asks, and what it makes of those it gets.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <iterator>

#include "apiserver/testing/list_watch_world.h"
#include "kube/testing/protobuf_bytes.h"

namespace shunt::apiserver {
namespace {

using kube::testing::bytes;
using kube::testing::entry;
using kube::testing::enveloped;
using kube::testing::framed;
using kube::testing::metadata;
using kube::testing::number;
using kube::testing::watch_event;
using testing::Answer;
using testing::classic;
using testing::cut;
using testing::Lines;
using testing::no_answer;
using testing::ok;
using testing::Outcome;
using testing::play;
using testing::refused;

Answer as(const char* content_type, Answer answer) {
  answer.content_type = content_type;
  return answer;
}
Answer protobuf(Lines pieces) {
  return as("application/vnd.kubernetes.protobuf", ok(std::move(pieces)));
}
Answer protobuf_watch(Lines pieces) {
  return as("application/vnd.kubernetes.protobuf;stream=watch", ok(std::move(pieces)));
}

std::string object(const std::string& name, int version) {
  return enveloped("Service", bytes(1, metadata(name, std::to_string(version))));
}
std::string added(const std::string& name, int version) {
  return framed(watch_event("ADDED", object(name, version)));
}
std::string bookmark(int version, bool end = false) {
  const std::string annotation =
      end ? entry(12, kube::kInitialEventsEndAnnotation, "true") : std::string();
  return framed(watch_event(
      "BOOKMARK", enveloped("Service", bytes(1, bytes(6, std::to_string(version)) + annotation))));
}
std::string status(int code, const std::string& reason) {
  return enveloped("Status", bytes(3, "m") + bytes(4, reason) + number(6, code));
}
std::string page(int version, const std::string& token, const std::vector<std::string>& names) {
  std::string raw = bytes(1, bytes(2, std::to_string(version)) + bytes(3, token));
  for (const std::string& name : names) {
    raw += bytes(2, bytes(1, metadata(name, "1")));
  }
  return enveloped("ServiceList", raw);
}
const char kJsonPage[] = R"({"kind":"ServiceList","metadata":{"resourceVersion":"7"},"items":[]})";

ReflectorOptions classic_lists() {
  ReflectorOptions out;
  out.streaming_lists = false;
  return out;
}
Lines accepts(const Outcome& outcome) {
  Lines out;
  for (const Request& request : outcome.requests) {
    out.push_back(request.accept);
  }
  return out;
}

const std::string kBoth = "application/vnd.kubernetes.protobuf, application/json";
const std::string kJson = "application/json";

TEST_CASE("protobuf streams are followed as JSON ones are") {
  const std::string whole = added("a", 1) + added("b", 2) + bookmark(5, true) +
                            framed(watch_event("DELETED", object("a", 6))) + added("c", 7) +
                            bookmark(9);
  for (std::size_t size : {std::size_t{1}, std::size_t{10}, whole.size()}) {
    Lines pieces;
    for (std::size_t i = 0; i < whole.size(); i += size) {
      pieces.push_back(whole.substr(i, size));
    }
    const Outcome got = play({protobuf_watch(pieces)});
    REQUIRE(got.lines.size() >= 3);
    CHECK(got.lines.front() == "watchlist rv=-");
    CHECK(got.lines.back() == "watch rv=9");
    // What came in one piece is one mail, and a was deleted in it.
    CHECK(
        got.lines[1] == (size == whole.size() ? "replace ns/b@2 ns/c@7" : "replace ns/a@1 ns/b@2"));
    CHECK(got.status.decode_errors == 0);
  }
}

TEST_CASE("protobuf lists are paged as JSON ones are") {
  CHECK(
      classic({protobuf({page(7, "t", {"a"})}), protobuf({page(7, "", {"b"})})}) ==
      Lines{
          "list rv=0 limit=500",
          "list rv=- limit=500 continue=t",
          "replace ns/a@1 ns/b@1",
          "watch rv=7"});
}

TEST_CASE("every request names both formats, and only classic lists may be compressed") {
  const Outcome listed = play({protobuf({page(7, "", {})})}, classic_lists());
  REQUIRE(listed.requests.size() == 2);
  CHECK(accepts(listed) == Lines{kBoth, kBoth});
  CHECK(listed.requests[0].may_be_compressed);
  CHECK_FALSE(listed.requests[1].may_be_compressed);
  CHECK_FALSE(play({}).requests[0].may_be_compressed);
}

TEST_CASE("the answer decides its format, one by one") {
  const Outcome got = play(
      {as("application/json", ok({kJsonPage})),
       protobuf_watch({added("a", 8)}),
       as("application/json;stream=watch",
          ok({R"({"type":"ADDED","object":{"metadata":{"name":"b","resourceVersion":"9"}}})"}))},
      classic_lists());
  CHECK(
      got.lines == Lines{
                       "list rv=0 limit=500",
                       "replace",
                       "watch rv=7",
                       "put ns/a@8",
                       "watch rv=8",
                       "put b@9",
                       "watch rv=9"});
}

TEST_CASE("a server without protobuf is asked for JSON at once, and for good") {
  for (const int code : {406, 415}) {
    const Outcome got = play(
        {refused(code, "only application/json"),
         as("application/json", ok({kJsonPage})),
         as("application/json", ok({}))},
        classic_lists());
    CHECK(
        got.lines ==
        Lines{"list rv=0 limit=500", "list rv=0 limit=500", "replace", "watch rv=7", "watch rv=7"});
    CHECK(accepts(got) == Lines{kBoth, kJson, kJson, kJson});
  }
}

TEST_CASE("a server that refuses JSON, too, makes no loop") {
  const Outcome got = play({refused(406, "no"), refused(406, "no")}, classic_lists());
  CHECK(
      got.lines ==
      Lines{"list rv=0 limit=500", "list rv=0 limit=500", "wait 800", "list rv=0 limit=500"});
  ReflectorOptions json = classic_lists();
  json.accept = kJson;
  CHECK(
      play({refused(406, "no")}, json).lines ==
      Lines{"list rv=0 limit=500", "wait 800", "list rv=0 limit=500"});
}

TEST_CASE("what the configuration accepts is asked for") {
  ReflectorOptions options;
  options.accept = "application/json";
  const Outcome got = play({}, options);
  CHECK(accepts(got) == Lines{"application/json"});
}

TEST_CASE("errors are understood in the format that they have") {
  const auto gone = [](Answer answer) {
    return play({protobuf_watch({bookmark(5, true)}), std::move(answer), no_answer(ECANCELED)})
        .lines;
  };
  const Lines want{"watchlist rv=-", "replace", "watch rv=5", "wait 800", "watchlist rv=5"};
  const auto starts = [&](const Lines& lines) {
    return Lines(lines.begin(), lines.begin() + std::min<std::ptrdiff_t>(5, std::ssize(lines)));
  };
  CHECK(
      starts(gone(protobuf_watch({framed(watch_event("ERROR", status(410, "Expired")))}))) == want);
  CHECK(starts(gone(refused(410, status(410, "Expired")))) == want);

  CHECK(classify_answer(504, status(410, "Expired"), std::nullopt).failure == ApiFailure::Expired);
  CHECK(classify_answer(403, status(0, ""), std::nullopt).failure == ApiFailure::Forbidden);
  const ApiError broken = classify_answer(500, status(410, "Expired").substr(0, 30), std::nullopt);
  CHECK(broken.failure == ApiFailure::Internal);
  CHECK(broken.what == "HTTP 500: a protobuf body that is no Status");
}

TEST_CASE("a protobuf object that cannot be decoded loses only itself") {
  const std::string bad =
      enveloped("Service", bytes(1, metadata("bad", "8")) + bytes(2, number(4, 1)));
  SECTION("live, the version moves on and the object that was known stays") {
    const Outcome got = play({protobuf_watch(
        {added("bad", 1), bookmark(5, true), framed(watch_event("MODIFIED", bad))})});
    CHECK(got.lines == Lines{"watchlist rv=-", "replace ns/bad@1", "watch rv=8"});
    CHECK(got.status.decode_errors == 1);
  }
  SECTION("in a classic list") {
    const std::string raw =
        bytes(1, bytes(2, "7")) + bytes(2, "\xff") + bytes(2, bytes(1, metadata("a", "5")));
    const Outcome got = play({protobuf({enveloped("ServiceList", raw)})}, classic_lists());
    CHECK(got.lines == Lines{"list rv=0 limit=500", "replace ns/a@5", "watch rv=7"});
    CHECK(got.status.decode_errors == 1);
  }
}

TEST_CASE("a protobuf list or stream that is broken replaces nothing") {
  const std::string whole = page(7, "", {"a", "b"});
  for (const Answer& answer :
       {protobuf({whole.substr(0, whole.size() - 10)}),
        protobuf({"<html>"}),
        protobuf({R"({"kind":"ServiceList"})"}),
        protobuf({status(410, "Expired")}),
        as("application/vnd.kubernetes.protobuf", cut({whole.substr(0, 60)}, ECONNRESET)),
        as("application/json", ok({whole}))}) {
    CHECK(classic({answer}) == Lines{"list rv=0 limit=500", "wait 800", "list rv=0 limit=500"});
  }
  // A frame that is none ends the stream; what follows is a classic list.
  CHECK(
      play({protobuf_watch({added("a", 1) + framed("x")}), protobuf({page(7, "", {})})}).lines ==
      Lines{"watchlist rv=-", "list rv=0 limit=500", "replace", "watch rv=7"});
}

std::string recording(const std::string& name) {
  std::ifstream file(std::string(SHUNT_SOURCE_DIR) + "/test/recordings/" + name, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("a real server's protobuf is understood") {
  const Outcome got = play(
      {protobuf({recording("list-services.pb.body")}),
       protobuf_watch({recording("watch-services.pb.body")}),
       protobuf_watch({recording("error-410-watch.pb.body")})},
      classic_lists());
  const Outcome json = play(
      {ok({recording("list-services-noheadless.json.body")}),
       ok({recording("watch-services.json.body")}),
       ok({recording("error-410-watch.json.body")})},
      classic_lists());
  CHECK(got.status.decode_errors == 0);
  CHECK(got.lines == json.lines);
  CHECK(got.lines.size() > 5);
}

}  // namespace
}  // namespace shunt::apiserver
