#include "http/message.h"

namespace shunt::http {
namespace {

std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Answer";
  }
}

void add_header(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

}  // namespace

std::string_view Request::header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) {
      return value;
    }
  }
  return {};
}

Response not_found() { return {404, "text/plain; charset=utf-8", "404 page not found\n"}; }

Response method_not_allowed(std::string_view allowed) {
  return {
      405, "text/plain; charset=utf-8", "Method Not Allowed\n", {{"Allow", std::string(allowed)}}};
}

std::string to_bytes(const Response& response, bool with_body) {
  std::string out;
  out.reserve(256 + (with_body ? response.body.size() : 0));
  out += "HTTP/1.1 ";
  out += std::to_string(response.status);
  out += " ";
  out += reason(response.status);
  out += "\r\n";
  add_header(out, "Content-Type", response.content_type);
  for (const auto& [name, value] : response.headers) {
    add_header(out, name, value);
  }
  add_header(out, "Content-Length", std::to_string(response.body.size()));
  add_header(out, "Connection", "close");
  out += "\r\n";
  if (with_body) {
    out += response.body;
  }
  return out;
}

}  // namespace shunt::http
