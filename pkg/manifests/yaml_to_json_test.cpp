#include "manifests/yaml_to_json.h"

#include <catch2/catch_test_macros.hpp>
#include <vector>

namespace shunt::manifests {
namespace {

struct Got {
  std::vector<std::string> documents;
  std::vector<std::size_t> lines;
  std::string error;
};
Got read(std::string_view yaml, std::size_t max_json = 100'000) {
  Got got;
  const auto result = yaml_to_json(yaml, max_json, [&](std::string_view json, std::size_t line) {
    got.documents.emplace_back(json);
    got.lines.push_back(line);
  });
  got.error = result ? "" : result.error().what;
  return got;
}
std::string one(std::string_view yaml) {
  const Got got = read(yaml);
  return !got.error.empty() ? got.error : got.documents.size() == 1 ? got.documents[0] : "?";
}

TEST_CASE("scalars are what Kubernetes makes of them") {
  struct Case {
    const char* yaml;
    const char* json;
  };
  const Case cases[] = {
      {"a: 80", R"({"a":80})"},
      {"a: \"80\"", R"({"a":"80"})"},
      {"a: '80'", R"({"a":"80"})"},
      {"a: !!str 80", R"({"a":"80"})"},
      {"a: |\n  80\n", R"({"a":"80\u000a"})"},
      {"a: 1_000", R"({"a":1000})"},
      {"a: 0x1F", R"({"a":31})"},
      {"a: 0777", R"({"a":511})"},
      {"a: 0o17", R"({"a":15})"},
      {"a: -0b11", R"({"a":-3})"},
      {"a: +5", R"({"a":5})"},
      {"a: \"-\"", R"({"a":"-"})"},
      {"a: 1.5", R"({"a":1.5})"},
      {"a: .5", R"({"a":0.5})"},
      {"a: 1e3", R"({"a":1000})"},
      {"a: 10.0.0.1", R"({"a":"10.0.0.1"})"},
      {"a: fd00::1", R"({"a":"fd00::1"})"},
      {"a: 2026-11-30", R"({"a":"2026-11-30"})"},
      {"a: 080", R"({"a":80})"},  // no octal number, but a decimal one
      {"a: .inf", R"({"a":".inf"})"},
      {"a: yes", R"({"a":true})"},
      {"a: Off", R"({"a":false})"},
      {"a: \"yes\"", R"({"a":"yes"})"},
      {"a: yES", R"({"a":"yES"})"},
      {"a: ~", R"({"a":null})"},
      {"a:", R"({"a":null})"},
      {"a: \"\"", R"({"a":""})"},
      {"yes: 1", R"({"yes":1})"},
      {"80: 1", R"({"80":1})"},
      {"a: \"q\\\"\\t\\x01\"", R"({"a":"q\"\u0009\u0001"})"},
      {"a: [1, b, {c: []}, {}]", R"({"a":[1,"b",{"c":[]},{}]})"},
      {"- a: 1\n  b: 2\n- c", R"([{"a":1,"b":2},"c"])"},
      {"{\"a\": \"1\", \"b\": [true]}", R"({"a":"1","b":[true]})"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.yaml);
    CHECK(one(c.yaml) == c.json);
  }
}

TEST_CASE("documents come one after the other, with the line they begin in, empty ones do not") {
  const Got got = read("# nothing\n---\n---\na: 1\n---\n# only words\n---\n\nb: 2\n...\n");
  CHECK(got.error.empty());
  CHECK(got.documents == std::vector<std::string>{R"({"a":1})", R"({"b":2})"});
  CHECK(got.lines.size() == 2);
  CHECK(read("").documents.empty());
}

TEST_CASE("an alias stands for what its anchor holds") {
  CHECK(
      one("a: &x [1, &y {b: c}]\nd: *x\ne: *y") ==
      R"({"a":[1,{"b":"c"}],"d":[1,{"b":"c"}],"e":{"b":"c"}})");
  CHECK(one("a: &x 7\nb: [*x, *x]") == R"({"a":7,"b":[7,7]})");
  CHECK(read("a: &x 1\n---\nb: *x").error.starts_with("line 3: "));
  CHECK(read("a: &x [*x]").error == "line 1: an alias inside of what it stands for");
}

TEST_CASE("what is wrong is told with its line") {
  CHECK(read("a: 1\nb: [1, 2\nc: 3\n").error.starts_with("line "));
  CHECK(read("a: 1\n\tb: 2\n").error.starts_with("line 2: "));
  CHECK(read("a: 1\n? [x]\n: 2\n").error == "line 2: a key that is no text");
  CHECK(read("a: &x b\n*x : 2\n").error == "line 2: a key that is an alias");
  CHECK(read("a: &x {b: 1}\nc:\n  <<: *x\n").error == "line 3: merge keys (<<) are not supported");
}

TEST_CASE("what no document can begin with is wrong") {
  CHECK(read(", &y {b: c}]\n---\nd: e\n").error == "line 1: no document can begin with this");
  CHECK(read("---\n---\n---\na: 1\n").error.empty());
}

TEST_CASE("depth is bounded") {
  CHECK(read(std::string(90, '[') + std::string(90, ']')).error.empty());
  CHECK(
      read(std::string(101, '[') + std::string(101, ']')).error ==
      "line 1: nested deeper than 100");
  CHECK_FALSE(read(std::string(100'000, '[')).error.empty());
  CHECK_FALSE(read(std::string(100'000, '{')).error.empty());
  std::string deep;
  for (int i = 0; i < 2000; ++i) {
    deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  }
  CHECK_FALSE(read(deep).error.empty());
}

TEST_CASE("what aliases unfold to is bounded") {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string inner = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + inner;
    for (int k = 0; k < 8; ++k) {
      bomb += ", " + inner;
    }
    bomb += "]\n";
  }
  const Got got = read(bomb);
  CHECK(got.documents.empty());
  CHECK(got.error.find("unfolds to more than 100000 bytes") != std::string::npos);
}

TEST_CASE("all documents of a text together are bounded") {
  std::string many;
  for (int i = 0; i < 1000; ++i) {
    many += "---\na: 1\n";
  }
  CHECK(read(many, 7000).error.empty());
  CHECK_FALSE(read(many, 6900).error.empty());
}

}  // namespace
}  // namespace shunt::manifests
