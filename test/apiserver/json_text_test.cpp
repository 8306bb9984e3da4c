// Parts of JSON texts, and times.
#include "test/apiserver/json_text.h"

#include <catch2/catch_test_macros.hpp>

#include "test/apiserver/json.h"
#include "test/apiserver/rfc3339.h"

namespace shunt::test_api {

TEST_CASE("members are found whatever stands inside strings") {
  const std::string text =
      R"({"a":"}\\\"],{\"b\":1","b":{"c":[1,{"d":"]"}]},"e":null,"f":-12,"g":[]})";
  CHECK(member(text, "a") == R"("}\\\"],{\"b\":1")");
  CHECK(member(text, "b") == R"({"c":[1,{"d":"]"}]})");
  CHECK(member(text, "e") == "null");
  CHECK(member(text, "f") == "-12");
  CHECK(member(text, "g") == "[]");
  CHECK_FALSE(member(text, "c").has_value());
  CHECK_FALSE(member("[]", "a").has_value());
  CHECK_FALSE(member("{}", "a").has_value());
}

TEST_CASE("elements are cut at their commas") {
  using Texts = std::vector<std::string>;
  CHECK(
      elements(R"([1,"a,b",{"x":[2,3]},[],true])") ==
      Texts{"1", R"("a,b")", R"({"x":[2,3]})", "[]", "true"});
  CHECK(elements("[]").empty());
  CHECK(elements("null").empty());
  CHECK(array_of(elements("[1,2]")) == "[1,2]");
  CHECK(array_of({}) == "[]");
}

TEST_CASE("a member is replaced in its place or added at the end") {
  CHECK(with_member(R"({"a":1,"b":{"c":2},"d":3})", "b", "null") == R"({"a":1,"b":null,"d":3})");
  CHECK(with_member(R"({"a":1})", "b", "[2]") == R"({"a":1,"b":[2]})");
  CHECK(with_member("{}", "a", "1") == R"({"a":1})");
}

TEST_CASE("strings read as the JSON library reads them") {
  for (const char* text :
       {R"("")",
        R"("plain")",
        R"("\"\\\/\b\f\n\r\t")",
        R"("\u0041\u00e9\u20ac\ud83d\ude00")",
        "\"\xe2\x82\xac\""}) {
    DYNAMIC_SECTION(text) { CHECK(string_value(text) == Json::parse(text).get<std::string>()); }
  }
  CHECK(string_value("12").empty());
  CHECK(json_string("a\"b\n") == R"("a\"b\n")");
}

TEST_CASE("no text leads a walk astray") {
  // What a fuzzer would try first: every piece of a text, which ends in the middle of something.
  const std::string text = R"({"a":"x\\\"y","b":[{"c":"\u00e9\ud83d"},[1]],"d":{"e":"f"}})";
  for (std::size_t size = 0; size < text.size(); ++size) {
    const std::string piece = text.substr(0, size);
    std::size_t seen = 0;
    for (Members members(piece); members.next();) {
      seen += members.key().size() + members.value().size();
      for (Elements each(members.value()); each.next();) {
        seen += string_value(each.value()).size();
      }
      seen += string_value(members.value()).size();
    }
    CHECK(seen <= 3 * piece.size());
  }
}

TEST_CASE("times") {
  struct Case {
    const char* text;
    std::optional<UnixTime> want;
  };
  const Case cases[] = {
      {"1970-01-01T00:00:00Z", UnixTime{0, 0}},
      {"2026-11-29T16:44:49Z", UnixTime{1795970689, 0}},
      {"2026-11-29T16:44:49.25Z", UnixTime{1795970689, 250'000'000}},
      {"2026-11-29T18:44:49+02:00", UnixTime{1795970689, 0}},
      {"2026-11-29T16:44:49", std::nullopt},
      {"2026-13-29T16:44:49Z", std::nullopt},
      {"yesterday", std::nullopt},
      {"", std::nullopt}};
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.text) { CHECK(parse_rfc3339(c.text) == c.want); }
  }
  CHECK(to_rfc3339({1795970689, 0}) == "2026-11-29T16:44:49Z");
  CHECK(to_rfc3339({1795970689, 250'000'000}) == "2026-11-29T16:44:49.250000Z");
}

}  // namespace shunt::test_api
