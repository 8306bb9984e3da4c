#include "http/request_parser.h"

#include <catch2/catch_test_macros.hpp>

namespace shunt::http {
namespace {

using State = RequestParser::State;

RequestParser fed(std::string_view bytes, std::size_t piece = std::string_view::npos) {
  RequestParser parser;
  while (!bytes.empty()) {
    parser.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  return parser;
}

int refusal(std::string_view bytes) {
  const RequestParser parser = fed(bytes);
  return parser.state() == State::Refused ? parser.refusal() : 0;
}

TEST_CASE("a request is one whatever the pieces it comes in") {
  const std::string_view bytes =
      "PUT /debug/flags/v?x=1&y HTTP/1.1\r\nHost: a\r\nX-Two:  b c \r\nContent-Length: 2\r\n\r\n42";
  for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, bytes.size()}) {
    const RequestParser parser = fed(bytes, piece);
    REQUIRE(parser.state() == State::Complete);
    const Request& request = parser.request();
    CHECK(request.method == "PUT");
    CHECK(request.path == "/debug/flags/v");
    CHECK(request.query == "x=1&y");
    CHECK(request.header("x-two") == "b c");
    CHECK(request.header("absent").empty());
    CHECK(request.body == "42");
  }
}

TEST_CASE("what people type is understood: bare line feeds, no headers, an empty line before") {
  CHECK(fed("GET /healthz HTTP/1.0\n\n").state() == State::Complete);
  CHECK(fed("\r\nGET / HTTP/1.1\r\n\r\n").state() == State::Complete);
  CHECK(fed("GET / HTTP/1.1\r\nempty:\r\n\r\n").state() == State::Complete);
}

TEST_CASE("without its end a request is unfinished") {
  CHECK(fed("").state() == State::Unfinished);
  CHECK(fed("GET / HTTP/1.1\r\n").state() == State::Unfinished);
  CHECK(fed("GET / HTTP/1.1\r\n\r").state() == State::Unfinished);
  CHECK(fed("PUT / HTTP/1.1\r\nContent-Length: 2\r\n\r\n1").state() == State::Unfinished);
}

TEST_CASE("what is no request is refused") {
  CHECK(refusal("GET\r\n\r\n") == 400);
  CHECK(refusal("GET /\r\n\r\n") == 400);
  CHECK(refusal(" / HTTP/1.1\r\n\r\n") == 400);
  CHECK(refusal("G\tT / HTTP/1.1\r\n\r\n") == 400);
  CHECK(refusal("GET healthz HTTP/1.1\r\n\r\n") == 400);
  CHECK(refusal("GET http://a/ HTTP/1.1\r\n\r\n") == 400);
  CHECK(refusal("GET /a b HTTP/1.1\r\n\r\n") == 400);
  CHECK(refusal("GET /\x01 HTTP/1.1\r\n\r\n") == 400);
  CHECK(refusal("GET / HTTP/2.0\r\n\r\n") == 505);
  CHECK(refusal("GET / FTP/1.1\r\n\r\n") == 400);
  CHECK(refusal("GET / HTTP/1.1\r\nno colon\r\n\r\n") == 400);
  CHECK(refusal("GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n") == 400);
  CHECK(refusal("GET / HTTP/1.1\r\nA : b\r\n\r\n") == 400);
  CHECK(refusal("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n") == 400);
  CHECK(refusal(std::string_view("GET / HTTP/1.1\r\nA: \0\r\n\r\n", 24)) == 400);
  CHECK(refusal({"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n", 13}) == 400);  // TLS
}

TEST_CASE("a body is small, of one length, and not coded") {
  CHECK(refusal("PUT / HTTP/1.1\r\nContent-Length: 1025\r\n\r\n") == 413);
  CHECK(refusal("PUT / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n") == 413);
  CHECK(refusal("PUT / HTTP/1.1\r\nContent-Length: -1\r\n\r\n") == 400);
  CHECK(refusal("PUT / HTTP/1.1\r\nContent-Length: 1x\r\n\r\n") == 400);
  CHECK(refusal("PUT / HTTP/1.1\r\nContent-Length:\r\n\r\n") == 400);
  CHECK(refusal("PUT / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n") == 400);
  CHECK(refusal("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n") == 501);
  const std::string largest(RequestParser::kMaxBody, 'x');
  CHECK(fed("PUT / HTTP/1.1\r\nContent-Length: 1024\r\n\r\n" + largest).request().body == largest);
}

TEST_CASE("a head is bounded in bytes and in headers, whether it ends or not") {
  const std::string start = "GET / HTTP/1.1\r\n";
  CHECK(refusal(start + "A: " + std::string(RequestParser::kMaxHead, 'x')) == 431);
  CHECK(refusal(start + "A: " + std::string(RequestParser::kMaxHead, 'x') + "\r\n\r\n") == 431);
  CHECK(refusal("GET /" + std::string(std::size_t{1} << 20, 'x')) == 431);
  std::string many = start;
  for (std::size_t i = 0; i <= RequestParser::kMaxHeaders; ++i) {
    many += "A: b\r\n";
  }
  CHECK(refusal(many + "\r\n") == 431);
  std::string blank_lines;
  for (int i = 0; i < 100'000; ++i) {
    blank_lines += "\r\n";
  }
  CHECK(fed(blank_lines, 1000).state() == State::Unfinished);  // and nothing is kept of them
}

TEST_CASE("what follows a request is not looked at") {
  const RequestParser parser = fed("GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n");
  REQUIRE(parser.state() == State::Complete);
  CHECK(parser.request().path == "/a");
  CHECK(parser.request().body.empty());
}

}  // namespace
}  // namespace shunt::http
