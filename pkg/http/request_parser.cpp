#include "http/request_parser.h"

#include <algorithm>
#include <charconv>

namespace shunt::http {
namespace {

bool is_token(std::string_view text) {
  constexpr std::string_view kSigns = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kSigns.find(c) != std::string_view::npos;
  });
}

bool is_visible(char c) { return c > ' ' && c != 0x7f; }  // and no byte above ASCII

// Of a header's value: no control characters but the tab.
bool is_text(std::string_view value) {
  return std::ranges::all_of(value, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '\t' || (byte >= ' ' && byte != 0x7f);
  });
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return out;
}

std::string_view trimmed_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// The next line of `rest`, without its end.
std::string_view take_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (!line.empty() && line.back() == '\r') {
    line.remove_suffix(1);
  }
  return line;
}

}  // namespace

void RequestParser::refuse(int status) {
  state_ = State::Refused;
  refusal_ = status;
  buffer_.clear();
}

RequestParser::State RequestParser::feed(std::string_view bytes) {
  if (state_ != State::Unfinished) {
    return state_;
  }
  const std::size_t limit = has_head_ ? body_size_ : kMaxHead + kMaxBody;
  buffer_.append(bytes.substr(0, limit - std::min(limit, buffer_.size())));
  if (!has_head_ && !take_head()) {
    return state_;
  }
  if (state_ == State::Unfinished && buffer_.size() >= body_size_) {
    request_.body = buffer_.substr(0, body_size_);
    state_ = State::Complete;
  }
  return state_;
}

// Moves a finished head out of the buffer; false while it is unfinished.
bool RequestParser::take_head() {
  for (;;) {
    const std::size_t end_of_line = buffer_.find('\n', scanned_);
    if (end_of_line == std::string::npos || end_of_line >= kMaxHead) {
      if (buffer_.size() >= kMaxHead) {
        refuse(431);
      }
      return false;
    }
    const std::string_view line(buffer_.data() + scanned_, end_of_line - scanned_);
    const bool is_empty = line.empty() || line == "\r";
    if (is_empty && scanned_ != 0) {
      break;
    }
    if (is_empty) {  // RFC 9112 §2.2: empty lines before a request are skipped
      buffer_.erase(0, end_of_line + 1);
      continue;
    }
    scanned_ = end_of_line + 1;
  }
  has_head_ = true;
  const std::size_t size = buffer_.find('\n', scanned_) + 1;
  parse_head(std::string_view(buffer_).substr(0, scanned_));
  if (state_ == State::Unfinished) {
    buffer_.erase(0, size);
  }
  return true;
}

void RequestParser::parse_head(std::string_view head) {
  if (!parse_request_line(take_line(head))) {
    return;
  }
  while (!head.empty()) {
    if (!parse_header(take_line(head))) {
      return refuse(400);
    }
    if (request_.headers.size() > kMaxHeaders) {
      return refuse(431);
    }
  }
  find_body();
}

// Refuses when it answers false.
bool RequestParser::parse_request_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t second = line.find(' ', first == std::string_view::npos ? first : first + 1);
  if (second == std::string_view::npos) {
    refuse(400);
    return false;
  }
  const std::string_view method = line.substr(0, first);
  const std::string_view version = line.substr(second + 1);
  if (!is_token(method) || !parse_target(line.substr(first + 1, second - first - 1)) ||
      !version.starts_with("HTTP/")) {
    refuse(400);
    return false;
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    refuse(505);
    return false;
  }
  request_.method = method;
  return true;
}

bool RequestParser::parse_target(std::string_view target) {
  if (target.empty() || target.front() != '/' || !std::ranges::all_of(target, is_visible)) {
    return false;
  }
  const std::size_t mark = std::min(target.find('?'), target.size());
  request_.path = target.substr(0, mark);
  request_.query = target.substr(std::min(mark + 1, target.size()));
  return true;
}

bool RequestParser::parse_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    return false;
  }
  const std::string_view value = trimmed_blanks(line.substr(colon + 1));
  if (!is_text(value)) {
    return false;
  }
  request_.headers.emplace_back(lower_case(line.substr(0, colon)), std::string(value));
  return true;
}

void RequestParser::find_body() {
  if (!request_.header("transfer-encoding").empty()) {
    return refuse(501);
  }
  bool has_length = false;
  for (const auto& [name, value] : request_.headers) {
    if (name != "content-length") {
      continue;
    }
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
    const bool is_number =
        error == std::errc{} && end == value.data() + value.size() && !value.empty();
    if (error == std::errc::result_out_of_range || (is_number && size > kMaxBody)) {
      return refuse(413);
    }
    if (!is_number || (has_length && size != body_size_)) {
      return refuse(400);
    }
    has_length = true;
    body_size_ = size;
  }
}

}  // namespace shunt::http
