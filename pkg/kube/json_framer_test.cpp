#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "kube/decode_json.h"
#include "kube/testing/pieces.h"

namespace shunt::kube {
namespace {

using testing::Framed;

Framed cut(
    std::string_view stream,
    std::size_t chunk_size,
    std::size_t max_frame = JsonFramer::kMaxFrame) {
  return testing::cut<JsonFramer>(stream, chunk_size, max_frame);
}

using Frames = std::vector<std::string>;

TEST_CASE("a stream is cut into the same frames whatever the chunks") {
  struct Case {
    const char* name;
    std::string stream;
    Frames frames;
    std::size_t pending;
  };
  const Case cases[] = {
      {"nothing", "", {}, 0},
      {"white space", " \r\n\t ", {}, 0},
      {"lines", "{\"a\":1}\n{\"b\":2}\n", {"{\"a\":1}", "{\"b\":2}"}, 0},
      {"no separator", "{}{}{}", {"{}", "{}", "{}"}, 0},
      {"nested", "{\"a\":{\"b\":[{}]}} {}", {"{\"a\":{\"b\":[{}]}}", "{}"}, 0},
      {"braces in strings", R"({"}":"{{"}{"a":"}"})", {R"({"}":"{{"})", R"({"a":"}"})"}, 0},
      {"escaped quote", R"({"a":"\"}"}{})", {R"({"a":"\"}"})", "{}"}, 0},
      {"escaped backslash", R"({"a":"\\"}{"b":"\\\"}"})", {R"({"a":"\\"})", R"({"b":"\\\"}"})"}, 0},
      {"line breaks inside", "{\n\"a\":\n1\n}\n", {"{\n\"a\":\n1\n}"}, 0},
      {"unfinished", "{}\n{\"a\":", {"{}"}, 5},
      {"unfinished string", "{\"}", {}, 3},
      {"UTF-8", "{\"a\":\"\xc3\xa4{\"}{}", {"{\"a\":\"\xc3\xa4{\"}", "{}"}, 0},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      for (const std::size_t chunk_size : {1U, 2U, 3U, 7U, 1000U}) {
        const Framed got = cut(c.stream, chunk_size);
        CHECK(got.frames == c.frames);
        CHECK_FALSE(got.failed);
        CHECK(got.pending == c.pending);
      }
    }
  }
}

TEST_CASE("text between frames ends the stream, after the frames before it") {
  for (const char* garbage : {"x", "]", "}", "\"", ",", "\xef\xbb\xbf{}"}) {
    for (const std::size_t chunk_size : {1U, 1000U}) {
      const Framed got = cut(std::string("{\"a\":1} ") + garbage + "{}", chunk_size);
      CHECK(got.failed);
      CHECK(got.frames == Frames{"{\"a\":1}"});
    }
  }
}

TEST_CASE("a frame above the limit ends the stream, complete or not") {
  const std::string ten = "{\"a\":1234}";
  const std::string eleven = "{\"a\":12345}";
  for (const std::size_t chunk_size : {1U, 4U, 1000U}) {
    CHECK(cut(ten + ten, chunk_size, 10).frames == Frames{ten, ten});
    const Framed complete = cut(ten + eleven, chunk_size, 10);
    CHECK(complete.failed);
    CHECK(complete.frames == Frames{ten});
    CHECK(cut("{\"a\":\"123456", chunk_size, 10).failed);
  }
}

TEST_CASE("a frame inside one chunk is not copied") {
  const std::string chunk = "{\"a\":1}{\"b\":2}";
  JsonFramer framer;
  std::vector<const char*> starts;
  REQUIRE(framer.feed(chunk, [&](std::string_view frame) {
    starts.push_back(frame.data());
    return true;
  }));
  CHECK(starts == std::vector<const char*>{chunk.data(), chunk.data() + 7});
}

TEST_CASE("the receiver can stop early, and the rest of the chunk is dropped") {
  JsonFramer framer;
  Frames frames;
  const auto take_one = [&](std::string_view frame) {
    frames.emplace_back(frame);
    return false;
  };
  REQUIRE(framer.feed("{\"a\":", take_one));
  REQUIRE(framer.feed("1}{\"b\":2}{\"c", take_one));
  CHECK(framer.pending() == 0);
  REQUIRE(framer.feed("{\"d\":4}", take_one));
  CHECK(frames == Frames{"{\"a\":1}", "{\"d\":4}"});
}

TEST_CASE("a large frame fed byte by byte is read in linear time") {
  const std::string frame = "{\"a\":\"" + std::string(std::size_t{4} << 20, 'x') + "\"}";
  const Framed got = cut(frame, 1);  // quadratic work would take minutes
  REQUIRE(got.frames.size() == 1);
  CHECK(got.frames[0] == frame);
}

}  // namespace
}  // namespace shunt::kube
