#include "kube/utf8.h"

#include <catch2/catch_test_macros.hpp>
#include <string>

namespace shunt::kube {
namespace {

TEST_CASE("well-formed UTF-8, and what only looks like it") {
  struct Case {
    const char* name;
    std::string_view bytes;
    bool text;
  };
  using namespace std::string_view_literals;
  for (const Case& c : {
           Case{"nothing", ""sv, true},
           Case{"ASCII", "10.0.0.1"sv, true},
           Case{"NUL is a character", "a\0b"sv, true},
           Case{"two bytes", "\xc3\xa4"sv, true},
           Case{"three bytes", "\xe2\x82\xac"sv, true},
           Case{"four bytes", "\xf0\x9f\x98\x80"sv, true},
           Case{"the last of all", "\xf4\x8f\xbf\xbf"sv, true},
           Case{"before the surrogates", "\xed\x9f\xbf"sv, true},
           Case{"behind the surrogates", "\xee\x80\x80"sv, true},
           Case{"a surrogate", "\xed\xa0\x80"sv, false},
           Case{"above the last", "\xf4\x90\x80\x80"sv, false},
           Case{"far above", "\xf8\x88\x80\x80\x80"sv, false},
           Case{"overlong slash", "\xc0\xaf"sv, false},
           Case{"overlong, three bytes", "\xe0\x9f\xbf"sv, false},
           Case{"overlong, four bytes", "\xf0\x8f\xbf\xbf"sv, false},
           Case{"a continuation alone", "\x80"sv, false},
           Case{"cut short", "\xe2\x82"sv, false},
           Case{"third byte is none", "\xe2\x82z"sv, false},
           Case{"not bytes of text", "\xff\xfe"sv, false},
       }) {
    DYNAMIC_SECTION(c.name) {
      // Wherever it stands among the eight bytes that are looked at together.
      for (std::size_t before = 0; before < 17; ++before) {
        for (const std::size_t after : {0U, 1U, 9U}) {
          const std::string all =
              std::string(before, 'x') + std::string(c.bytes) + std::string(after, 'y');
          CHECK(is_utf8(all) == c.text);
        }
      }
    }
  }
}

}  // namespace
}  // namespace shunt::kube
