#include "test/apiserver/request.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace shunt::test_api {
namespace {

constexpr std::size_t kMaxLine = 1 << 16;
constexpr std::size_t kMaxBody = 1 << 30;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(
      out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::string percent_decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ptr ==
            text.data() + i + 3) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

void split_target(Request& request) {
  const std::string_view target = request.target;
  const std::size_t mark = target.find('?');
  request.path = percent_decoded(target.substr(0, mark), false);
  std::string_view rest = mark == std::string_view::npos ? "" : target.substr(mark + 1);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view value = pair.substr(std::min(equals + 1, pair.size()));
    request.query.emplace(
        percent_decoded(pair.substr(0, equals), true), percent_decoded(value, true));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

std::optional<std::size_t> parse_size(std::string_view text, int base) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || value > kMaxBody) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::string Request::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::string Request::query_value(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? "" : found->second;
}

bool Request::query_flag(const std::string& name) const {
  const std::string value = query_value(name);
  return value == "true" || value == "1";
}

bool RequestReader::fill() {
  buffer_.erase(0, used_);
  used_ = 0;
  std::array<char, 16384> bytes{};
  const std::size_t got = stream_.read(bytes.data(), bytes.size());
  buffer_.append(bytes.data(), got);
  return got > 0;
}

std::optional<std::string> RequestReader::line() {
  for (;;) {
    const std::size_t end = buffer_.find('\n', used_);
    if (end != std::string::npos) {
      std::string out = buffer_.substr(used_, end - used_);
      used_ = end + 1;
      if (!out.empty() && out.back() == '\r') {
        out.pop_back();
      }
      return out;
    }
    if (buffer_.size() - used_ > kMaxLine || !fill()) {
      return std::nullopt;
    }
  }
}

bool RequestReader::take(std::size_t size, std::string& out) {
  while (size > 0) {
    if (used_ == buffer_.size() && !fill()) {
      return false;
    }
    const std::size_t part = std::min(size, buffer_.size() - used_);
    out.append(buffer_, used_, part);
    used_ += part;
    size -= part;
  }
  return true;
}

bool RequestReader::read_chunks(std::string& out) {
  for (;;) {
    const auto head = line();
    const auto size = head ? parse_size(*head, 16) : std::nullopt;
    if (!size || out.size() + *size > kMaxBody || !take(*size, out)) {
      return false;
    }
    const auto end = line();  // after the data, or the end of the (empty) trailer
    if (!end || *size == 0) {
      return end.has_value();
    }
  }
}

bool RequestReader::read_body(Request& request) {
  if (request.header("expect") == "100-continue" &&
      !stream_.write("HTTP/1.1 100 Continue\r\n\r\n")) {
    return false;
  }
  if (lower(request.header("transfer-encoding")) == "chunked") {
    return read_chunks(request.body);
  }
  const std::string length = request.header("content-length");
  if (length.empty()) {
    return true;
  }
  const auto size = parse_size(length, 10);
  return size && take(*size, request.body);
}

std::optional<Request> RequestReader::next() {
  const auto first = line();
  if (!first) {
    return std::nullopt;
  }
  const std::size_t method_end = first->find(' ');
  const std::size_t target_end = first->rfind(' ');
  if (method_end == std::string::npos || target_end <= method_end) {
    return std::nullopt;
  }
  Request request;
  request.method = first->substr(0, method_end);
  request.target = first->substr(method_end + 1, target_end - method_end - 1);
  split_target(request);
  for (auto text = line();; text = line()) {
    if (!text) {
      return std::nullopt;
    }
    if (text->empty()) {
      break;
    }
    const std::size_t colon = std::min(text->find(':'), text->size());
    const std::size_t value = text->find_first_not_of(" \t", colon + 1);
    request.headers[lower(text->substr(0, colon))] =
        value == std::string::npos ? "" : text->substr(value);
  }
  if (!read_body(request)) {
    return std::nullopt;
  }
  return request;
}

}  // namespace shunt::test_api
