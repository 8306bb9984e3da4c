#include "apiserver/inflate.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "apiserver/testing/gzip.h"

namespace shunt::apiserver {
namespace {

using testing::gzip;

struct Inflated {
  std::string text;
  bool failed = false;
  bool complete = false;
  std::size_t largest = 0;
};

Inflated inflate_all(std::string_view bytes, std::size_t piece_size) {
  Inflater inflater;
  Inflated out;
  while (!bytes.empty() && !out.failed) {
    const auto fed = inflater.feed(bytes.substr(0, piece_size), [&](std::string_view piece) {
      out.text += piece;
      out.largest = std::max(out.largest, piece.size());
      return true;
    });
    out.failed = !fed;
    bytes.remove_prefix(std::min(piece_size, bytes.size()));
  }
  out.complete = !out.failed && inflater.complete();
  return out;
}

// Long enough for several pieces of output, and not all the same.
std::string long_text() {
  std::string out;
  for (int i = 0; out.size() < 5 * Inflater::kPiece; ++i) {
    out += std::to_string(i * 7919) + ",";
  }
  return out;
}

TEST_CASE("gzip becomes what it was, however its bytes arrive") {
  for (const std::string& text : {std::string(), std::string("hello"), long_text()}) {
    const std::string packed = gzip(text);
    for (const std::size_t size : {1U, 7U, 1000U, 1'000'000U}) {
      const Inflated got = inflate_all(packed, size);
      CHECK(got.text == text);
      CHECK(got.complete);
      CHECK(got.largest <= Inflater::kPiece);
    }
  }
}

TEST_CASE("several gzip members in a row are one body") {
  for (const std::size_t size : {1U, 1000U}) {
    const Inflated got = inflate_all(gzip("hello ") + gzip("") + gzip("world"), size);
    CHECK(got.text == "hello world");
    CHECK(got.complete);
  }
}

TEST_CASE("gzip that is cut short is not complete, wherever it is cut") {
  const std::string packed = gzip("hello hello hello");
  CHECK_FALSE(inflate_all("", 1).complete);
  for (std::size_t size = 1; size < packed.size(); ++size) {
    INFO(size);
    CHECK_FALSE(inflate_all(packed.substr(0, size), 5).complete);
    CHECK_FALSE(inflate_all(packed.substr(0, size), 1000).failed);
  }
}

TEST_CASE("what is no gzip, or was damaged, is an error") {
  std::string wrong_sum = gzip("hello");
  wrong_sum[wrong_sum.size() - 6] ^= 1;
  std::string wrong_data = gzip(long_text());
  std::fill_n(wrong_data.begin() + 1000, 100, '\xff');
  for (const std::string& bytes :
       {std::string("{\"kind\":\"ServiceList\"}"),
        std::string("\x1f\x8b\x09\x00", 4),
        wrong_sum,
        wrong_data,
        gzip("hello") + "trailing text"}) {
    CHECK(inflate_all(bytes, 1).failed);
    CHECK(inflate_all(bytes, 100'000).failed);
  }
}

TEST_CASE("a body of zeros comes out in pieces, and ends when the reader has enough") {
  const std::string packed = gzip(std::string(std::size_t{64} << 20, '\0'));
  CHECK(packed.size() < 1'000'000);
  Inflater inflater;
  std::size_t produced = 0;
  const auto fed = inflater.feed(packed, [&](std::string_view piece) {
    CHECK(piece.size() <= Inflater::kPiece);
    produced += piece.size();
    return produced < 10 * Inflater::kPiece;
  });
  REQUIRE(fed);
  CHECK_FALSE(*fed);
  CHECK(produced == 10 * Inflater::kPiece);
}

}  // namespace
}  // namespace shunt::apiserver
