// What a client asks and what it is answered, as values.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shunt::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method;
  std::string path;   // as sent: nothing is decoded
  std::string query;  // without the "?"
  Headers headers;    // names in lower case
  std::string body;

  // "" when absent; the first one counts.
  std::string_view header(std::string_view lower_case_name) const;
};

// What a handler writes is sent as it is: names and values are ours, never a peer's.
struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  Headers headers = {};  // more than Content-Type, Content-Length and Connection
};

Response not_found();
Response method_not_allowed(std::string_view allowed);  // "GET, HEAD"

// The bytes of an answer; `with_body` is false for HEAD, which hears of its length alone.
std::string to_bytes(const Response& response, bool with_body);

}  // namespace shunt::http
