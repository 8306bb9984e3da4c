// What an Event looks like on the wire.
#include "events/event.h"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "kube/utf8.h"

namespace shunt::events {
namespace {

using Json = nlohmann::json;
using Kind = kube::Notice::Kind;

const WallTime kTime{std::chrono::microseconds(1'700'000'000'012'345)};
double half() { return 0.5; }

kube::Notice notice() {
  return {
      .warning = true,
      .kind = Kind::Service,
      .object = {"shop", "web"},
      .uid = "u-1",
      .reason = "SetAside",
      .action = "Plan",
      .note = "no room"};
}

TEST_CASE("an Event says everything the API asks for") {
  const Event event{"web.17", notice(), kTime, std::nullopt};
  CHECK(Json::parse(create_body(event, reporter_on("node-1"))) == Json::parse(R"({
    "apiVersion": "events.k8s.io/v1", "kind": "Event",
    "metadata": {"name": "web.17", "namespace": "shop"},
    "eventTime": "2023-11-14T22:13:20.012345Z",
    "reportingController": "kube-shunt", "reportingInstance": "kube-shunt-node-1",
    "action": "Plan", "reason": "SetAside", "note": "no room", "type": "Warning",
    "regarding": {"apiVersion": "v1", "kind": "Service", "namespace": "shop", "name": "web", "uid": "u-1"}
  })"));
}

TEST_CASE("what belongs to no namespace is told of in the default one") {
  kube::Notice node = notice();
  node.kind = Kind::Node;
  node.object = {"", "node-1"};
  node.uid = "";
  node.warning = false;
  const Json body = Json::parse(create_body({"n.1", node, kTime, Series{2, kTime}}, Reporter{}));
  CHECK(body["metadata"]["namespace"] == "default");
  CHECK(body["type"] == "Normal");
  CHECK(body["regarding"] == Json{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", "node-1"}});
  CHECK(body["series"] == Json{{"count", 2}, {"lastObservedTime", "2023-11-14T22:13:20.012345Z"}});
}

TEST_CASE("a series is patched with its count and time alone") {
  CHECK(
      series_patch({7, kTime}) ==
      R"({"series":{"count":7,"lastObservedTime":"2023-11-14T22:13:20.012345Z"}})");
}

TEST_CASE("an Event is named after its object and the time, if the API takes that") {
  CHECK(event_name(notice(), kTime, half) == "web.17979cfe36e65ea8");
  for (const std::string& name :
       {std::string(),
        std::string("Web"),
        std::string("a..b"),
        std::string("-a"),
        std::string("a/b"),
        std::string(250, 'x')}) {
    CAPTURE(name);
    kube::Notice odd = notice();
    odd.object.name = name;
    CHECK(event_name(odd, kTime, half) == "event-80000000800000008000000080000000");
  }
}

TEST_CASE("a note is cut between characters, and is text whatever it was") {
  CHECK(clean_text("plain", 1024) == "plain");
  CHECK(clean_text("plain", 3) == "pla");
  CHECK(clean_text("a\xc3\xa4", 2) == "a");
  CHECK(clean_text("a\xc3\xa4", 3) == "a\xc3\xa4");
  CHECK(clean_text("a\xf0\x9f\x98\x80z", 5) == "a\xf0\x9f\x98\x80");
  CHECK(clean_text("a\xff\xc3", 10) == "a??");
  CHECK(clean_text("\xed\xa0\x80", 10) == "???");
  CHECK(clean_text("", 10).empty());

  kube::Notice hostile = notice();
  for (int i = 0; i < 4000; ++i) {
    hostile.note += static_cast<char>(i * 7);
  }
  const Json body = Json::parse(create_body({"x.1", hostile, kTime, std::nullopt}, Reporter{}));
  const auto note = body["note"].get<std::string>();
  CHECK(note.size() <= kMaxNote);
  CHECK(note.size() > kMaxNote - 4);
  CHECK(kube::is_utf8(note));
}

TEST_CASE("an instance is as long as the API takes") {
  CHECK(reporter_on(std::string(300, 'h')).instance.size() == kMaxWord);
}

}  // namespace
}  // namespace shunt::events
