// JSON lists that arrive in pieces. What a list may hold is tested with decode_list, which reads
// its whole body through the same decoder.
#include "kube/json_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "kube/testing/pieces.h"

namespace shunt::kube {
namespace {

using testing::Listed;
using Texts = std::vector<std::string>;

Listed read(std::string_view body, std::size_t piece_size, std::size_t max_item = kMaxObject) {
  return testing::read<JsonListDecoder>(body, piece_size, max_item);
}

std::string named(std::string_view name) {
  return fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name);
}

TEST_CASE("a JSON list is the same however it is cut into pieces") {
  // Brackets, quotes and commas inside strings; what is not known; metadata and kind at the end.
  const std::string body =
      R"({"apiVersion" : "v1", "note":"\"items\":[", "x":{"items":[{"metadata":{"name":"no"}}]},
          "items" : [ )" +
      named("a") + " ,\n" + named("]}{[,\\\"\\\\") +
      R"(, 5, "a,b]", null ,{"spec":1}, [[{}],{}],)" + named("z") +
      R"( ] , "metadata":{"continue":"t","resourceVersion":"7"},"kind":"ServiceList"})";
  for (const std::size_t size : {1U, 2U, 3U, 5U, 7U, 64U, 10'000U}) {
    const Listed got = read(body, size);
    REQUIRE(got.meta);
    CHECK(got.meta->resource_version == "7");
    CHECK(got.meta->continue_token == "t");
    CHECK(got.items == Texts{"a", "]}{[,\"\\", "z"});
    CHECK(got.issues == Texts{"items[2]", "items[3]", "items[4]", "items[5]", "items[6]"});
  }
}

TEST_CASE("an item is delivered when it is complete, not at the end of the list") {
  Texts items;
  JsonListDecoder<Service> decoder(
      {.on_item = [&](Service&& item) { items.push_back(item.meta.key.name); },
       .on_issue = [](DecodeIssue&&) { FAIL(); }});
  REQUIRE(decoder.feed(
      R"({"kind":"ServiceList","items":[)" + named("a") + "," + named("b").substr(0, 9)));
  CHECK(items == Texts{"a"});
  REQUIRE(decoder.feed(named("b").substr(9)));
  CHECK(items == Texts{"a", "b"});
  CHECK_FALSE(decoder.finish());
}

TEST_CASE("a JSON list that ends too early is no list, wherever it ends") {
  const std::string body = R"({"kind":"ServiceList","metadata":{"resourceVersion":"7"},"items":[)" +
                           named("a") + "," + named("b") + "]}";
  REQUIRE(read(body, body.size()).meta);
  for (std::size_t size = 0; size < body.size(); ++size) {
    INFO(size);
    const Listed got = read(body.substr(0, size), 16);
    REQUIRE_FALSE(got.meta);
    CHECK(got.meta.error().code == Errc::Invalid);
    CHECK(got.meta.error().what.starts_with("list: not JSON: "));
  }
}

TEST_CASE("items that could be taken for none, or for more than there are, are refused") {
  struct Case {
    const char* name;
    const char* body;
    const char* error;
  };
  for (const Case& c : {
           Case{
               "two arrays",
               R"({"kind":"ServiceList","items":[],"items":[{}]})",
               "list: not a list: two arrays of items"},
           Case{
               "a key with escapes",
               R"({"kind":"ServiceList","it\u0065ms":[{}]})",
               "not a list: items under an escaped name"},
           Case{
               "no comma",
               R"({"kind":"ServiceList","items":[{}{}]})",
               "list: not JSON: text between the items of a list"},
           Case{
               "no item before a comma",
               R"({"kind":"ServiceList","items":[,{}]})",
               "list: not JSON: no value where an item of a list must be"},
           Case{
               "the wrong bracket",
               R"({"kind":"ServiceList","items":[{}}]})",
               "list: not JSON: text between the items of a list"},
       }) {
    DYNAMIC_SECTION(c.name) {
      const Listed got = read(c.body, 1000);
      REQUIRE_FALSE(got.meta);
      CHECK(got.meta.error().what == c.error);
    }
  }
}

TEST_CASE("a JSON item above the limit loses only itself, and is not kept") {
  const std::string large = named(std::string(1000, 'x'));
  const std::string body =
      R"({"kind":"ServiceList","items":[)" + named("a") + "," + large + "," + named("b") + "]}";
  for (const std::size_t size : {1U, 100U, 10'000U}) {
    const Listed got = read(body, size, 500);
    REQUIRE(got.meta);
    CHECK(got.items == Texts{"a", "b"});
    CHECK(got.issues == Texts{"items[1]"});
  }
  CHECK(read(body, 100, large.size()).items.size() == 3);
}

TEST_CASE("what surrounds the items of a JSON list is bounded") {
  const std::string junk(JsonListCutter::kMaxRest, ' ');
  const Listed got = read("{" + junk, 100'000);
  REQUIRE_FALSE(got.meta);
  CHECK(got.meta.error().what == "list: not a list: more than 1 MiB beside its items");
}

}  // namespace
}  // namespace shunt::kube
