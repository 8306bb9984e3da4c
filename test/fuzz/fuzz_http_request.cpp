// The request parser of the health and metrics servers, whose ports are open to the world. The
// first byte of the input is the size of the pieces, the rest is what a peer sends.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http/request_parser.h"
#include "promises.h"

namespace shunt::http {
namespace {

using fuzz::promise;
using State = RequestParser::State;

RequestParser fed(std::string_view bytes, std::size_t piece) {
  RequestParser parser;
  while (!bytes.empty() && parser.state() == State::Unfinished) {
    parser.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  return parser;
}

bool is_one_line(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

void promise_request(const Request& request) {
  promise(!request.method.empty() && is_one_line(request.method), "a request has a method");
  promise(request.path.starts_with('/') && is_one_line(request.path), "a path starts with /");
  promise(request.path.find('?') == std::string::npos, "the query is apart");
  promise(is_one_line(request.query), "a query is one line");
  promise(request.body.size() <= RequestParser::kMaxBody, "a body is small");
  promise(request.headers.size() <= RequestParser::kMaxHeaders, "headers are few");
  for (const auto& [name, value] : request.headers) {
    promise(!name.empty() && is_one_line(name) && is_one_line(value), "a header is one line");
  }
}

// The server reads 4 KiB at a time; the parser keeps no more than it may need of a larger piece.
void parse(std::size_t piece, std::string_view bytes) {
  const RequestParser parser = fed(bytes, piece);
  const RequestParser again = fed(bytes, 1);
  promise(parser.state() == again.state(), "the answer does not depend on the pieces");
  if (parser.state() == State::Refused) {
    promise(parser.refusal() >= 400 && parser.refusal() < 600, "a refusal has a status");
    promise(parser.refusal() == again.refusal(), "the refusal does not depend on the pieces");
  } else if (parser.state() == State::Complete) {
    promise_request(parser.request());
    promise(parser.request().body == again.request().body, "nor does the body");
    promise(parser.request().headers == again.request().headers, "nor do the headers");
  }
}

}  // namespace
}  // namespace shunt::http

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  shunt::http::parse(
      std::size_t{1} + data[0] * std::size_t{16},
      {reinterpret_cast<const char*>(data + 1), size - 1});
  return 0;
}
