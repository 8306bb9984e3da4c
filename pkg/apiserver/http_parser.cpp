#include "apiserver/http_parser.h"

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/trimmed.h"

namespace shunt::apiserver {
namespace {

tl::unexpected<Error> malformed(std::string_view what) {
  return fail(Errc::Invalid, "malformed HTTP response: " + std::string(what));
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), lower);
  return out;
}

template <typename T>
std::optional<T> number(std::string_view text, int base) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

std::string_view without_return(std::string_view line) {
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

// "HTTP/1.1 200 OK"
std::optional<int> status_of(std::string_view line) {
  if (!line.starts_with("HTTP/1.") || line.size() < 12 || (line[7] != '0' && line[7] != '1') ||
      line[8] != ' ' || (line.size() > 12 && line[12] != ' ')) {
    return std::nullopt;
  }
  const auto status = number<unsigned>(line.substr(9, 3), 10);
  if (!status || *status < 100 || *status > 599) {
    return std::nullopt;
  }
  return static_cast<int>(*status);
}

Result<> add_header(HttpHead& head, std::string_view line) {
  const auto colon = line.find(':');
  const std::string_view name = line.substr(0, std::min(colon, line.size()));
  if (colon == std::string_view::npos || name.empty() ||
      name.find_first_of(" \t") != std::string_view::npos) {
    return malformed("a header line without a name");
  }
  head.headers.emplace_back(lower_case(name), trimmed(line.substr(colon + 1)));
  return {};
}

}  // namespace

std::string_view HttpHead::header(std::string_view lower_case_name) const {
  const auto found = std::ranges::find(
      headers, lower_case_name, [](const auto& h) { return std::string_view(h.first); });
  return found == headers.end() ? std::string_view{} : std::string_view(found->second);
}

Result<HttpHead> parse_http_head(std::string_view text) {
  HttpHead head;
  std::size_t line_number = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = without_return(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line_number++ == 0) {
      const auto status = status_of(line);
      if (!status) {
        return malformed("no status line");
      }
      head.status = *status;
      head.keep_alive = line[7] == '1';
    } else if (auto added = add_header(head, line); !added) {
      return tl::unexpected(added.error());
    }
  }
  if (line_number == 0) {
    return malformed("no status line");
  }
  const std::string connection = lower_case(head.header("connection"));
  if (connection.find("close") != std::string::npos) {
    head.keep_alive = false;
  }
  return head;
}

HttpResponseParser::HttpResponseParser(OnHead on_head, OnBody on_body)
    : on_head_(std::move(on_head)), on_body_(std::move(on_body)) {}

Result<> HttpResponseParser::feed(std::string_view bytes) {
  while (!bytes.empty() && !stopped_) {
    Result<> step;
    switch (state_) {
      case State::Head:
        step = feed_head(bytes);
        break;
      case State::Sized:
        feed_data(bytes, State::Complete);
        break;
      case State::UntilClose:
        stopped_ = !on_body_(bytes);
        return {};
      case State::ChunkSize:
        step = feed_chunk_size(bytes);
        break;
      case State::ChunkData:
        feed_data(bytes, State::ChunkEnd);
        break;
      case State::ChunkEnd: {
        const auto line = take_line(bytes, 2);
        if (!line || (*line && !line_.empty())) {
          return malformed("a chunk longer than its size");
        }
        state_ = *line ? State::ChunkSize : State::ChunkEnd;
        break;
      }
      case State::Trailer:
        step = feed_trailer(bytes);
        break;
      case State::Complete:
        excess_ = true;
        return {};
    }
    if (!step) {
      return step;
    }
  }
  return {};
}

Result<> HttpResponseParser::finish() {
  if (state_ == State::UntilClose) {
    state_ = State::Complete;
    keep_alive_ = false;
  }
  if (!complete()) {
    return fail(Errc::Again, "the server closed the connection too early", ECONNRESET);
  }
  return {};
}

// A head may come in several pieces, and be preceded by informational ones (1xx).
Result<> HttpResponseParser::feed_head(std::string_view& bytes) {
  while (!bytes.empty()) {
    const auto newline = bytes.find('\n');
    const auto taken = newline == std::string_view::npos ? bytes.size() : newline + 1;
    line_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    if (line_.size() > kMaxHead) {
      return malformed("a head of more than 64 KiB");
    }
    if (!line_.ends_with("\n\r\n") && !line_.ends_with("\n\n")) {
      continue;
    }
    const auto end = line_.ends_with("\r\n") ? line_.size() - 2 : line_.size() - 1;
    auto head = parse_http_head(std::string_view(line_).substr(0, end));
    line_.clear();
    if (!head) {
      return tl::unexpected(head.error());
    }
    if (head->status < 200) {
      // 101 would change the protocol; a flood of the others is no server of ours.
      if (head->status == 101 || ++informational_ > 10) {
        return malformed("an unexpected informational answer");
      }
      continue;
    }
    return start_body(*head);
  }
  return {};
}

Result<> HttpResponseParser::start_body(const HttpHead& head) {
  keep_alive_ = head.keep_alive;
  std::optional<std::uint64_t> length;
  bool chunked = false;
  for (const auto& [name, value] : head.headers) {
    if (name == "transfer-encoding") {
      if (chunked || lower_case(value) != "chunked") {
        return malformed("a transfer coding other than chunked");
      }
      chunked = true;
    } else if (name == "content-length") {
      const auto parsed = number<std::uint64_t>(value, 10);
      if (!parsed || (length && *length != *parsed)) {
        return malformed("a bad Content-Length");
      }
      length = parsed;
    }
  }
  if (chunked && length) {
    return malformed("both Content-Length and Transfer-Encoding");
  }
  if (head.status == 204 || head.status == 304) {
    state_ = State::Complete;
  } else if (chunked) {
    state_ = State::ChunkSize;
  } else if (length) {
    remaining_ = *length;
    state_ = remaining_ > 0 ? State::Sized : State::Complete;
  } else {
    state_ = State::UntilClose;
  }
  stopped_ = !on_head_(head);
  return {};
}

void HttpResponseParser::feed_data(std::string_view& bytes, State next) {
  const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(remaining_, bytes.size()));
  remaining_ -= piece;
  if (remaining_ == 0) {
    state_ = next;
  }
  const std::string_view data = bytes.substr(0, piece);
  bytes.remove_prefix(piece);
  stopped_ = !on_body_(data);
}

Result<bool> HttpResponseParser::take_line(std::string_view& bytes, std::size_t limit) {
  const auto newline = bytes.find('\n');
  const auto taken = newline == std::string_view::npos ? bytes.size() : newline + 1;
  if (line_.size() + taken > limit) {
    return malformed("a line that is too long");
  }
  line_.append(bytes.substr(0, taken));
  bytes.remove_prefix(taken);
  if (newline == std::string_view::npos) {
    return false;
  }
  line_.resize(without_return(std::string_view(line_).substr(0, line_.size() - 1)).size());
  return true;
}

Result<> HttpResponseParser::feed_chunk_size(std::string_view& bytes) {
  const auto line = take_line(bytes, kMaxChunkLine);
  if (!line) {
    return tl::unexpected(line.error());
  }
  if (!*line) {
    return {};
  }
  const std::string_view digits = trimmed(std::string_view(line_).substr(0, line_.find(';')));
  const auto size = number<std::uint64_t>(digits, 16);
  if (!size) {
    return malformed("a bad chunk size");
  }
  line_.clear();
  remaining_ = *size;
  state_ = remaining_ > 0 ? State::ChunkData : State::Trailer;
  return {};
}

Result<> HttpResponseParser::feed_trailer(std::string_view& bytes) {
  const auto before = bytes.size();
  const auto line = take_line(bytes, kMaxHead);
  if (!line) {
    return tl::unexpected(line.error());
  }
  trailer_bytes_ += before - bytes.size();
  if (trailer_bytes_ > kMaxHead) {
    return malformed("a trailer of more than 64 KiB");
  }
  if (*line) {
    state_ = line_.empty() ? State::Complete : State::Trailer;
    line_.clear();
  }
  return {};
}

}  // namespace shunt::apiserver
