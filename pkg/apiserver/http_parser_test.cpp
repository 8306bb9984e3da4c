#include "apiserver/http_parser.h"

#include <catch2/catch_test_macros.hpp>
#include <cerrno>

namespace shunt::apiserver {
namespace {

struct Parsed {
  int status = 0;
  std::string body;
  bool complete = false;
  bool reusable = false;
  std::string error;
  int sys_errno = 0;
};

Parsed parse(const std::string& text, std::size_t piece = 1000000, bool then_end = false) {
  Parsed out;
  HttpResponseParser parser(
      [&](const HttpHead& head) {
        out.status = head.status;
        return true;
      },
      [&](std::string_view body) {
        out.body += body;
        return true;
      });
  Result<> fed;
  for (std::size_t i = 0; i < text.size() && fed; i += piece) {
    fed = parser.feed(std::string_view(text).substr(i, piece));
  }
  if (fed && then_end) {
    fed = parser.finish();
  }
  if (!fed) {
    out.error = fed.error().what;
    out.sys_errno = fed.error().sys_errno;
  }
  out.complete = parser.complete();
  out.reusable = parser.reusable();
  return out;
}

TEST_CASE("the three kinds of body are read, however the bytes arrive") {
  struct Case {
    const char* name;
    std::string text;
    bool ends;
    std::string body;
    bool reusable;
  };
  for (const Case& c : std::vector<Case>{
           {"sized", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false, "hello", true},
           {"empty", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false, "", true},
           {"chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            "5\r\nhello\r\n1;name=value\r\n \r\n00A\r\n0123456789\r\n0\r\n\r\n",
            false,
            "hello 0123456789",
            true},
           {"chunked with a trailer",
            "HTTP/1.1 200 OK\r\ntransfer-encoding:Chunked\r\n\r\n"
            "2\r\nok\r\n0\r\nExpires: never\r\n\r\n",
            false,
            "ok",
            true},
           {"until the end", "HTTP/1.1 200 OK\r\n\r\nall of it", true, "all of it", false},
           {"no body", "HTTP/1.1 204 No Content\r\n\r\n", false, "", true},
           {"not to be kept",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
            false,
            "x",
            false},
           {"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", false, "x", false},
           {"after 100 Continue",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx",
            false,
            "x",
            true},
           {"bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 1\n\nx", false, "x", true}}) {
    DYNAMIC_SECTION(c.name) {
      for (const std::size_t piece : {1U, 2U, 3U, 7U, 1000U}) {
        const Parsed got = parse(c.text, piece, c.ends);
        CHECK(got.error.empty());
        CHECK(got.complete);
        CHECK(got.body == c.body);
        CHECK(got.reusable == c.reusable);
      }
    }
  }
}

TEST_CASE("an answer that ends too early is a lost connection") {
  for (const char* text :
       {"",
        "HTTP/1.1 200",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"}) {
    const Parsed got = parse(text, 1000, true);
    CHECK(got.sys_errno == ECONNRESET);
    CHECK_FALSE(got.complete);
  }
}

TEST_CASE("malformed answers are refused") {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  const std::string chunked = ok + "Transfer-Encoding: chunked\r\n\r\n";
  for (const std::string& text :
       {std::string("SSH-2.0-OpenSSH\r\n\r\n"),
        std::string("HTTP/2 200 OK\r\n\r\n"),
        std::string("HTTP/1.1 2000 OK\r\n\r\n"),
        std::string("HTTP/1.1 099 OK\r\n\r\n"),
        std::string("\r\n\r\n"),
        std::string("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        ok + "No colon\r\n\r\n",
        ok + " Folded: x\r\n\r\n",
        ok + "A: b\r\n continued\r\n\r\n",
        ok + "Name : x\r\n\r\n",
        ok + "Content-Length: -1\r\n\r\n",
        ok + "Content-Length: 5x\r\n\r\n",
        ok + "Content-Length: 99999999999999999999\r\n\r\n",
        ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        ok + "Transfer-Encoding: gzip, chunked\r\n\r\n",
        ok + "X: " + std::string(HttpResponseParser::kMaxHead, 'x') + "\r\n\r\n",
        chunked + "x\r\n",
        chunked + "-1\r\n",
        chunked + "\r\n",
        chunked + "11111111111111111\r\n",
        chunked + "2\r\nabc\r\n",
        chunked + "1;" + std::string(300, 'x') + "\r\n",
        chunked + "0\r\n" + std::string(HttpResponseParser::kMaxHead + 1, 'x') + "\r\n"}) {
    CAPTURE(text.substr(0, 100));
    for (const std::size_t piece : {1U, 1000000U}) {
      const Parsed got = parse(text, piece);
      CHECK_FALSE(got.error.empty());
      CHECK_FALSE(got.complete);
    }
  }
}

TEST_CASE("bytes after an answer spoil the connection, not the answer") {
  const Parsed got = parse("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 500 X\r\n\r\n");
  CHECK(got.complete);
  CHECK(got.status == 200);
  CHECK_FALSE(got.reusable);
}

TEST_CASE("a callback that says stop ends the reading") {
  std::string body;
  HttpResponseParser parser(
      [](const HttpHead&) { return true; },
      [&](std::string_view piece) {
        body += piece;
        return false;
      });
  CHECK(parser.feed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n"));
  CHECK(parser.stopped());
  CHECK(body == "a");
}

TEST_CASE("headers are found by name in any case") {
  const auto head = parse_http_head("HTTP/1.1 429 Slow\r\nRetry-AFTER: \t 7 \r\nX:\r\n");
  REQUIRE(head);
  CHECK(head->header("retry-after") == "7");
  CHECK(head->header("x").empty());
  CHECK(head->header("y").empty());
}

}  // namespace
}  // namespace shunt::apiserver
