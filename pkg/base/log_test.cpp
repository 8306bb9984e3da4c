#include "base/log.h"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "base/utf8.h"

namespace shunt::log {
namespace {

TEST_CASE("a line has time, level, message and fields, in either format") {
  const Fields fields{kv("family", "IPv4"), kv("error", "no \"luck\""), kv("keys", 3)};
  CHECK(
      line(Format::Logfmt, "T", Level::Warn, "apply failed", fields) ==
      "ts=T level=warning msg=\"apply failed\" family=IPv4 error=\"no \\\"luck\\\"\" keys=3");
  CHECK(
      line(Format::Json, "T", Level::Warn, "apply failed", fields) ==
      R"({"ts":"T","level":"warning","msg":"apply failed","family":"IPv4","error":"no \"luck\"","keys":"3"})");
}

TEST_CASE("a JSON line is valid whatever the bytes are") {
  const struct {
    std::string_view text;
    std::string_view json;
  } cases[] = {
      {"", R"("")"},
      {"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80",
       "\"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\""},
      {"a\nb\t\\", R"("a\nb\u0009\\")"},
      {std::string_view("\0\x7f", 2), R"("\u0000\u007f")"},
      {"\xff", "\"\xEF\xBF\xBD\""},
      {"a\xC3", "\"a\xEF\xBF\xBD\""},                                // cut off
      {"\xC0\xAF", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},                  // overlong
      {"\xED\xA0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},  // a surrogate
      {"\xF4\x90\x80\x80x", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDx\""},
  };
  for (const auto& c : cases) {
    CHECK(json_string(c.text) == c.json);
  }
}

TEST_CASE("a long field is cut between characters, and says so") {
  const std::string fits(kLongestField, 'x');
  CHECK(bounded(fits) == fits);
  CHECK(bounded(fits + "yz") == fits + "...(2 bytes more)");

  // Three bytes a character: 2048 is inside one.
  std::string euros;
  for (int i = 0; i < 1000; ++i) {
    euros += "\xE2\x82\xAC";
  }
  CHECK(bounded(euros) == euros.substr(0, 2046) + "...(954 bytes more)");

  const std::string garbage(5000, '\x80');
  CHECK(bounded(garbage).size() <= kLongestField + 30);
  CHECK(line(Format::Json, "T", Level::Info, "m", {kv("k", fits + fits)}).size() < 2200);
  CHECK(line(Format::Logfmt, "T", Level::Info, "m", {kv("k", fits + fits)}).size() < 2200);
}

TEST_CASE("characters have a length, other bytes have none") {
  CHECK(utf8_length("a") == 1);
  CHECK(utf8_length("\xC3\xA9") == 2);
  CHECK(utf8_length("\xE2\x82\xAC") == 3);
  CHECK(utf8_length("\xF0\x9F\x98\x80") == 4);
  for (const char* bad : {"", "\x80", "\xC1\x80", "\xE0\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82"}) {
    CHECK(utf8_length(bad) == 0);
  }
  CHECK(utf8_boundary("abc", 7) == 3);
  CHECK(utf8_boundary("a\xC3\xA9", 2) == 1);
}

TEST_CASE("-v 2 and above is debug") {
  CHECK(level_for_verbosity(0) == Level::Info);
  CHECK(level_for_verbosity(1) == Level::Info);
  CHECK(level_for_verbosity(2) == Level::Debug);
  CHECK(level_for_verbosity(10) == Level::Debug);
}

// What goes to stderr while this lives.
class Stderr {
 public:
  Stderr() {
    char name[] = "/tmp/kube-shunt-log-XXXXXX";
    const int file = ::mkstemp(name);
    path_ = name;
    before_ = ::dup(STDERR_FILENO);
    (void)::dup2(file, STDERR_FILENO);
    (void)::close(file);
  }
  ~Stderr() {
    (void)::dup2(before_, STDERR_FILENO);
    (void)::close(before_);
    (void)::unlink(path_.c_str());
  }
  std::string text() const {
    std::ostringstream out;
    out << std::ifstream(path_).rdbuf();
    return out.str();
  }

 private:
  std::string path_;
  int before_ = -1;
};

TEST_CASE("format and level can change while others write, and lines stay whole") {
  std::string text;
  {
    const Stderr captured;
    {
      std::vector<std::jthread> writers;
      writers.reserve(2);
      for (int i = 0; i < 2; ++i) {
        writers.emplace_back([] {
          for (int n = 0; n < 200; ++n) {
            info("written", {kv("n", n)});
            debug("seldom");
          }
        });
      }
      for (int n = 0; n < 50; ++n) {
        set_format(n % 2 == 0 ? Format::Json : Format::Logfmt);
        set_level(n % 2 == 0 ? Level::Debug : Level::Info);
      }
    }
    set_format(Format::Json);
    set_level(Level::Info);
    info("last");
    debug("not written");
    set_format(Format::Logfmt);
    text = captured.text();
  }
  std::istringstream lines(text);
  std::string one;
  int written = 0;
  while (std::getline(lines, one)) {
    const bool json = one.starts_with("{\"ts\":\"") && one.ends_with('}');
    CHECK((json || one.starts_with("ts=")));
    written += one.find("written") != std::string::npos ? 1 : 0;
  }
  CHECK(written == 400);
  CHECK(text.ends_with("\"level\":\"info\",\"msg\":\"last\"}\n"));
}

}  // namespace
}  // namespace shunt::log
