#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "kube/decode_protobuf.h"
#include "kube/testing/pieces.h"
#include "kube/testing/protobuf_bytes.h"

namespace shunt::kube::protobuf {
namespace {

using testing::framed;
using testing::Framed;
using Frames = std::vector<std::string>;

Framed cut(
    std::string_view stream, std::size_t chunk_size, std::size_t max_frame = Framer::kMaxFrame) {
  return testing::cut<Framer>(stream, chunk_size, max_frame);
}

TEST_CASE("a protobuf stream is cut into the same frames whatever the chunks") {
  const std::string long_frame(300, 'x');  // its length is not symmetric
  struct Case {
    const char* name;
    std::string stream;
    Frames frames;
    std::size_t pending;
  };
  for (const Case& c : {
           Case{"nothing", "", {}, 0},
           Case{"one", framed("abc"), {"abc"}, 0},
           Case{"an empty one", framed("") + framed("a"), {"", "a"}, 0},
           Case{
               "several",
               framed("a") + framed(long_frame) + framed("b"),
               {"a", long_frame, "b"},
               0},
           Case{"unfinished", framed("a") + framed("bcd").substr(0, 6), {"a"}, 6},
           Case{"unfinished length", framed("a").substr(0, 3), {}, 3},
       }) {
    DYNAMIC_SECTION(c.name) {
      for (const std::size_t size : {1U, 2U, 3U, 7U, 1000U}) {
        const Framed got = cut(c.stream, size);
        CHECK(got.frames == c.frames);
        CHECK_FALSE(got.failed);
        CHECK(got.pending == c.pending);
      }
    }
  }
}

TEST_CASE("a protobuf frame above the limit ends the stream as soon as its length is known") {
  for (const std::size_t size : {1U, 100U}) {
    CHECK(cut(framed("0123456789"), size, 10).frames.size() == 1);
    const Framed got = cut(framed("a") + framed("0123456789x").substr(0, 4), size, 10);
    CHECK(got.frames == Frames{"a"});
    CHECK(got.failed);
  }
  CHECK(cut("HTTP/1.1 502 Bad Gateway", 100).failed);
}

TEST_CASE("the receiver of protobuf frames can stop early, and the rest of the chunk is dropped") {
  Framer framer;
  Frames frames;
  const auto take_one = [&](std::string_view frame) {
    frames.emplace_back(frame);
    return false;
  };
  REQUIRE(framer.feed(framed("a") + framed("b") + std::string(1, '\0'), take_one));
  CHECK(framer.pending() == 0);
  REQUIRE(framer.feed(framed("c"), take_one));
  CHECK(frames == Frames{"a", "c"});
}

}  // namespace
}  // namespace shunt::kube::protobuf
