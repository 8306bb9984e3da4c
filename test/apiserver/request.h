// An HTTP/1.1 request as a value, and reading it from a connection.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "test/apiserver/stream.h"

namespace shunt::test_api {

struct Request {
  std::string method;
  std::string target;  // as sent: path and query
  std::string path;    // decoded
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::optional<ClientCertificate> certificate;
  bool trusted_port = false;  // came in through the plain admin port: no authentication

  std::string header(const std::string& name) const;       // "" when absent
  std::string query_value(const std::string& name) const;  // "" when absent
  bool query_flag(const std::string& name) const;          // "true" or "1"
};

// Reads requests one after the other from a kept-alive connection.
class RequestReader {
 public:
  explicit RequestReader(Stream& stream) : stream_(stream) {}
  std::optional<Request> next();  // nothing: the peer is gone or does not speak HTTP

 private:
  bool fill();
  std::optional<std::string> line();
  bool take(std::size_t size, std::string& out);
  bool read_body(Request& request);
  bool read_chunks(std::string& out);

  Stream& stream_;
  std::string buffer_;
  std::size_t used_ = 0;
};

}  // namespace shunt::test_api
