// What a real API server said in protobuf (test/recordings/README.md): the same objects as in JSON.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>

#include "kube/decode_json.h"
#include "kube/decode_protobuf.h"
#include "kube/protobuf_list.h"
#include "kube/testing/recordings.h"

namespace shunt::kube {
namespace {

std::string recorded(const std::string& file) {
  return testing::contents(testing::kRecordings / file);
}

template <typename T>
std::map<ObjectKey, T> by_key(const DecodedList<T>& list) {
  std::map<ObjectKey, T> out;
  for (const T& item : list.items) {
    CHECK(out.emplace(item.meta.key, item).second);
  }
  return out;
}

template <typename T>
std::vector<WatchEvent<T>> protobuf_events(const std::string& name) {
  return testing::recorded_events<T, protobuf::Framer>(
      name + ".pb.body", &protobuf::decode_watch_event<T>);
}

template <typename T>
void same_list(const std::string& name, const std::string& json_name) {
  const auto json = decode_list<T>(recorded(json_name + ".json.body"));
  const auto protobuf = protobuf::decode_list<T>(recorded(name + ".pb.body"));
  INFO(name << ": " << (protobuf ? "" : protobuf.error().what));
  REQUIRE(json);
  REQUIRE(protobuf);
  CHECK(protobuf->issues.empty());
  CHECK_FALSE(protobuf->items.empty());
  CHECK(protobuf->items == json->items);
  CHECK(protobuf->meta.resource_version == json->meta.resource_version);
  CHECK(protobuf->meta.continue_token == json->meta.continue_token);
}

TEST_CASE("a recorded list is the same in protobuf and in JSON") {
  same_list<Service>("list-services", "list-services-noheadless");
  same_list<EndpointSlice>("list-endpointslices", "list-endpointslices");
  same_list<Node>("list-node", "list-node");
  same_list<ServiceCidr>("list-servicecidrs", "list-servicecidrs");
}

template <typename T>
struct Listed {
  std::vector<T> items;
  std::size_t issues = 0;
  Result<ListMeta> meta;
};

template <typename T>
Listed<T> in_pieces(std::string_view body, std::size_t size) {
  Listed<T> out;
  protobuf::ProtobufListDecoder<T> decoder(
      {.on_item = [&](T&& item) { out.items.push_back(std::move(item)); },
       .on_issue = [&](DecodeIssue&&) { ++out.issues; }});
  while (!body.empty()) {
    const auto fed = decoder.feed(body.substr(0, size));
    REQUIRE(fed);
    body.remove_prefix(std::min(size, body.size()));
  }
  out.meta = decoder.finish();
  return out;
}

TEST_CASE("a recorded list is the same however it is cut into pieces") {
  const std::string body = recorded("list-endpointslices.pb.body");
  const auto whole = protobuf::decode_list<EndpointSlice>(body);
  REQUIRE(whole);
  for (const std::size_t size : {1U, 2U, 3U, 5U, 100U, 4096U}) {
    const auto got = in_pieces<EndpointSlice>(body, size);
    REQUIRE(got.meta);
    CHECK(got.meta->resource_version == whole->meta.resource_version);
    CHECK(got.items == whole->items);
    CHECK(got.issues == 0);
  }
}

// The two were recorded at the same time, but each server watch sends its bookmarks when it likes.
template <typename T>
void same_events(const std::string& name) {
  auto json = testing::recorded_events<T, JsonFramer>(name + ".json.body", &decode_watch_event<T>);
  auto protobuf = protobuf_events<T>(name);
  const auto is_bookmark = [](const WatchEvent<T>& e) { return e.type == EventType::Bookmark; };
  std::erase_if(json, is_bookmark);
  std::erase_if(protobuf, is_bookmark);
  REQUIRE_FALSE(json.empty());
  REQUIRE(protobuf.size() == json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    INFO(name << " " << i << " " << to_string(json[i].meta.key));
    CHECK(protobuf[i].type == json[i].type);
    CHECK(protobuf[i].meta == json[i].meta);
    CHECK(protobuf[i].object == json[i].object);
  }
}

TEST_CASE("a recorded watch is the same in protobuf and in JSON") {
  same_events<Service>("watch-services");
  same_events<EndpointSlice>("watch-endpointslices");
}

TEST_CASE("a list streamed in protobuf ends with its bookmark and equals the list") {
  const auto events = protobuf_events<EndpointSlice>("watchlist-endpointslices");
  REQUIRE(events.size() > 1);
  std::map<ObjectKey, EndpointSlice> streamed;
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    CHECK(events[i].type == EventType::Added);
    REQUIRE(events[i].object);
    streamed.emplace(events[i].meta.key, *events[i].object);
  }
  CHECK(events.back().type == EventType::Bookmark);
  CHECK(events.back().initial_events_end);
  CHECK_FALSE(events.back().meta.resource_version.empty());
  const auto listed = protobuf::decode_list<EndpointSlice>(recorded("list-endpointslices.pb.body"));
  REQUIRE(listed);
  CHECK(streamed == by_key(*listed));
}

TEST_CASE("the recorded watch of a node sees its zone change") {
  const auto events = protobuf_events<Node>("watch-node");
  std::vector<std::string> zones;
  for (const auto& event : events) {
    if (event.object && (zones.empty() || zones.back() != event.object->zone.value_or("-"))) {
      zones.push_back(event.object->zone.value_or("-"));
    }
  }
  CHECK(zones.size() >= 2);
}

TEST_CASE("the recorded end of an expired protobuf watch is understood") {
  const auto events = protobuf_events<Service>("error-410-watch");
  REQUIRE(events.size() == 1);
  CHECK(events[0].type == EventType::Error);
  CHECK(events[0].status.code == 410);
  CHECK(events[0].status.reason == "Expired");
  CHECK(events[0].status.message == "too old resource version: 1 (389)");
}

}  // namespace
}  // namespace shunt::kube
