#include "test/apiserver/response.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "test/apiserver/identifiers.h"

namespace shunt::test_api {
namespace {

constexpr std::size_t kContentLengthLimit = 2048;
constexpr std::size_t kChunk = 65536;

std::string_view reason_phrase(int code) {
  static const std::map<int, std::string_view> phrases{
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {409, "Conflict"},
      {410, "Gone"},
      {415, "Unsupported Media Type"},
      {422, "Unprocessable Entity"},
      {429, "Too Many Requests"},
      {500, "Internal Server Error"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"}};
  const auto found = phrases.find(code);
  return found == phrases.end() ? "Status" : found->second;
}

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  (void)::gmtime_r(&now, &utc);  // fails only for years beyond int
  std::array<char, 64> text{};
  const std::size_t size =
      std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return {text.data(), size};
}

}  // namespace

std::map<std::string, std::string> standard_headers(const std::string& content_type) {
  return {
      {"Audit-Id", new_uid()},
      {"Cache-Control", "no-cache, private"},
      {"Content-Type", content_type},
      {"X-Kubernetes-Pf-Flowschema-Uid", "7a4723d5-e8e2-4c3d-9756-bef2b0ba9705"},
      {"X-Kubernetes-Pf-Prioritylevel-Uid", "6ada9508-508a-4eee-8d97-ed5a53455590"}};
}

void Response::begin(int code, std::map<std::string, std::string> headers) {
  if (started()) {
    return;
  }
  code_ = code;
  headers_ = std::move(headers);
  headers_.merge(more_headers);
  if (on_head) {
    on_head(code);
  }
}

bool Response::send_head(std::string_view length_header) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", code_, reason_phrase(code_));
  for (const auto& [name, value] : headers_) {
    head += fmt::format("{}: {}\r\n", name, value);
  }
  head += fmt::format("Date: {}\r\n{}\r\n\r\n", http_date(), length_header);
  head_sent_ = true;
  broken_ = broken_ || !stream_.write(head);
  return !broken_;
}

bool Response::send_buffer() {
  const std::string head = fmt::format("{:x}\r\n", unsent().size());
  const std::size_t begin = kHeadRoom - head.size();  // a buffer is smaller than eight digits
  buffer_.replace(begin, head.size(), head);
  buffer_ += "\r\n";
  broken_ = broken_ || !stream_.write(std::string_view(buffer_).substr(begin));
  return !broken_;
}

bool Response::send_chunks(std::string_view data) {
  while (!data.empty() && !broken_) {
    std::size_t size = shape.bytes_per_write > 0 ? std::min(data.size(), shape.bytes_per_write)
                                                 : std::min(data.size(), kChunk);
    const bool cut = size >= shape.cut_after;
    if (cut) {
      size = shape.cut_after;
    }
    shape.cut_after -= size;
    std::string chunk = fmt::format("{:x}\r\n", size);
    chunk.append(data.substr(0, size));
    chunk += "\r\n";
    if (size > 0 && !stream_.write(chunk)) {
      broken_ = true;
    }
    data.remove_prefix(size);
    if (cut) {
      drop();
    } else if (shape.write_delay_ms > 0) {
      broken_ = broken_ || stream_.wait(-1, shape.write_delay_ms) == Stream::Wait::Gone;
    }
  }
  return !broken_;
}

bool Response::write(std::string_view data) {
  buffer_.append(data);
  return buffer_.size() < kChunk ? !broken_ : flush();
}

bool Response::flush() {
  if (!head_sent_ && !send_head("Transfer-Encoding: chunked")) {
    return false;
  }
  const bool bent = shape.bytes_per_write > 0 || shape.write_delay_ms > 0 ||
                    shape.cut_after != std::numeric_limits<std::uint64_t>::max();
  const bool sent = unsent().empty() ? !broken_ : bent ? send_chunks(unsent()) : send_buffer();
  buffer_.resize(kHeadRoom);
  return sent;
}

bool Response::end() {
  const bool shaped = shape.bytes_per_write > 0 || shape.cut_after <= unsent().size();
  if (!head_sent_ && unsent().size() <= kContentLengthLimit && !shaped) {
    (void)send_head(fmt::format("Content-Length: {}", unsent().size()));  // broken_ remembers
    broken_ = broken_ || !stream_.write(unsent());
  } else if (flush()) {
    broken_ = !stream_.write("0\r\n\r\n");
  }
  ended_ = true;
  return !broken_;
}

void Response::send(int code, std::map<std::string, std::string> headers, std::string_view body) {
  begin(code, std::move(headers));
  (void)write(body);  // end() answers for both
  (void)end();        // a peer that left needs no answer
}

void Response::drop() {
  broken_ = true;
  stream_.close(shape.reset);
}

}  // namespace shunt::test_api
