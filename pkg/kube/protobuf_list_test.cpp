// Protobuf lists that arrive in pieces; the items themselves are decode_protobuf_test's.
#include "kube/protobuf_list.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "kube/decode_protobuf.h"
#include "kube/testing/pieces.h"
#include "kube/testing/protobuf_bytes.h"

namespace shunt::kube::protobuf {
namespace {

using testing::bytes;
using testing::enveloped;
using testing::Listed;
using testing::metadata;
using testing::number;
using testing::tag;
using testing::varint;
using Texts = std::vector<std::string>;

Listed read(std::string_view body, std::size_t piece_size, std::size_t max_item = kMaxObject) {
  return testing::read<ProtobufListDecoder>(body, piece_size, max_item);
}

std::string item(std::string_view name) { return bytes(2, bytes(1, metadata(name))); }
std::string list_meta() { return bytes(1, bytes(1, "") + bytes(2, "7") + bytes(3, "t")); }

TEST_CASE("a protobuf list is the same however it is cut into pieces") {
  const std::string unknown =
      number(9, -1) + tag(10, 1) + "12345678" + tag(11, 5) + "1234" + bytes(12, "skipped");
  const std::string raw = item("a") + unknown + bytes(2, "") + item(std::string(300, 'b')) +
                          bytes(2, number(2, 1)) + list_meta() + item("z");
  const std::string body = enveloped("ServiceList", raw) + unknown;
  for (const std::size_t size : {1U, 2U, 3U, 5U, 7U, 64U, 10'000U}) {
    const Listed got = read(body, size);
    INFO(size << (got.meta ? "" : got.meta.error().what));
    REQUIRE(got.meta);
    CHECK(got.meta->resource_version == "7");
    CHECK(got.meta->continue_token == "t");
    CHECK(got.items == Texts{"a", "", std::string(300, 'b'), "z"});
    CHECK(got.issues == Texts{"items[3]"});
  }
}

TEST_CASE("a protobuf item is delivered when it is complete, not at the end of the list") {
  Texts items;
  ProtobufListDecoder<Service> decoder(
      {.on_item = [&](Service&& got) { items.push_back(got.meta.key.name); },
       .on_issue = [](DecodeIssue&&) { FAIL(); }});
  const std::string body = enveloped("ServiceList", item("a") + item("b"));
  const std::size_t in_b = body.find(item("b")) + 5;
  REQUIRE(decoder.feed(body.substr(0, in_b)));
  CHECK(items == Texts{"a"});
  CHECK_FALSE(decoder.finish());
}

TEST_CASE("an empty protobuf list is a list") {
  const Listed got = read(enveloped("ServiceList", list_meta()), 1);
  REQUIRE(got.meta);
  CHECK(got.items.empty());
  CHECK(read(enveloped("ServiceList", ""), 1).meta);
}

TEST_CASE("a protobuf list that ends too early is no list, wherever it ends") {
  const std::string whole = enveloped("ServiceList", list_meta() + item("a"));
  const std::string trailer = bytes(3, "") + bytes(4, "");
  for (std::size_t size = 0; size < whole.size() - trailer.size(); ++size) {
    INFO(size);
    // At the end of typeMeta there is a message, but no list in it.
    const Listed got = read(whole.substr(0, size), 16);
    REQUIRE_FALSE(got.meta);
    CHECK(got.meta.error().code == Errc::Invalid);
  }
}

TEST_CASE("a protobuf item that is broken loses only itself, as its length tells it apart") {
  for (const std::string& bad :
       {std::string("\xff\xff\xff"),
        bytes(1, "\xff").substr(0, 2),
        number(1, 1),
        tag(1, 2) + varint(std::uint64_t{1} << 31U),
        tag(3, 3)}) {
    const Listed got = read(enveloped("ServiceList", item("a") + bytes(2, bad) + item("b")), 10);
    REQUIRE(got.meta);
    CHECK(got.items == Texts{"a", "b"});
    CHECK(got.issues == Texts{"items[1]"});
  }
}

TEST_CASE("a protobuf item above the limit loses only itself, and is not kept") {
  const std::string large = bytes(1, metadata(std::string(1000, 'x')));
  const std::string body = enveloped("ServiceList", item("a") + bytes(2, large) + item("b"));
  for (const std::size_t size : {1U, 100U, 10'000U}) {
    const Listed got = read(body, size, 500);
    REQUIRE(got.meta);
    CHECK(got.items == Texts{"a", "b"});
    CHECK(got.issues == Texts{"items[1]"});
  }
  CHECK(read(body, 100, large.size()).items.size() == 3);
}

TEST_CASE("what is no protobuf list is refused as a whole") {
  const std::string magic("k8s\0", 4);
  const std::string type = bytes(1, bytes(1, "v1") + bytes(2, "ServiceList"));
  struct Case {
    const char* name;
    std::string body;
    const char* error;
  };
  for (const Case& c : {
           Case{"empty", "", "list: an empty or unfinished protobuf object"},
           Case{"the magic alone", magic, "list: an empty or unfinished protobuf object"},
           Case{"JSON", "{\"kind\":\"ServiceList\"}", "not a Kubernetes protobuf object"},
           Case{"HTML", "<html>", "not a Kubernetes protobuf object"},
           Case{"another list", enveloped("PodList", item("a")), "not a list: kind \"PodList\""},
           Case{"one object", enveloped("Service", ""), "not a list: kind \"Service\""},
           Case{"no kind", magic + bytes(2, item("a")), "not a list: kind \"\""},
           Case{"no list", magic + type, "not a list: there is none in it"},
           Case{"two lists", magic + type + bytes(2, "") + bytes(2, ""), "not a list: two of them"},
           Case{
               "a Status",
               enveloped("Status", bytes(3, "no") + bytes(4, "Expired") + number(6, 410)),
               "a Status instead of a list: Expired: no"},
           Case{
               "items of the wrong type",
               enveloped("ServiceList", number(2, 1)),
               "broken protobuf: a part of the list has the wrong type"},
           Case{
               "an item that is longer than the list",
               magic + type + bytes(2, tag(2, 2) + varint(100)) + std::string(100, 'x'),
               "broken protobuf: a field runs over the end of the list"},
           Case{
               "a number that is longer than the list",
               magic + type + bytes(2, tag(9, 0) + "\xff") + "\x01",
               "broken protobuf: a field runs over the end of the list"},
           Case{
               "a fixed field that is longer than the list",
               magic + type + bytes(2, tag(9, 1) + "1234") + "5678",
               "broken protobuf: a field runs over the end of the list"},
           Case{
               "a number of more than 64 bits",
               magic + type + tag(9, 0) + std::string(9, '\xff') + "\x02",
               "broken protobuf: a number of more than 64 bits"},
           Case{"field 0", magic + std::string(1, '\0'), "broken protobuf: a field with an imposs"},
           Case{"a group", magic + tag(9, 3), "broken protobuf: a field of an unknown wire type"},
           Case{
               "a huge metadata",
               magic + type + tag(2, 2) + varint(std::uint64_t{1} << 62U) + tag(1, 2) +
                   varint(std::uint64_t{1} << 61U),
               "not a list: more than 1 MiB beside its items"},
           Case{
               "metadata that is none",
               enveloped("ServiceList", bytes(1, number(2, 7))),
               "not a list: metadata: resourceVersion: expected bytes, got a number"},
       }) {
    for (const std::size_t size : {1U, 1000U}) {
      DYNAMIC_SECTION(c.name << ", in pieces of " << size) {
        const Listed got = read(c.body, size);
        REQUIRE_FALSE(got.meta);
        CHECK(got.meta.error().code == Errc::Invalid);
        CHECK(got.meta.error().what.substr(0, std::string_view(c.error).size()) == c.error);
      }
    }
  }
}

}  // namespace
}  // namespace shunt::kube::protobuf
