// The answer to one request, written as Go's net/http writes it: a body of up to 2048 bytes that
// nobody flushed has a Content-Length, anything else is chunked. This is also where the network
// gets worse on request: slow bytes, a cut in the middle of an object.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "test/apiserver/stream.h"

namespace shunt::test_api {

// How a fault bends the bytes of a response.
struct Shape {
  std::size_t bytes_per_write = 0;  // 0: as fast as possible
  int write_delay_ms = 0;
  std::uint64_t cut_after = std::numeric_limits<std::uint64_t>::max();  // body bytes still allowed
  bool reset = false;  // a cut is a TCP reset and not an end of file
};

class Response {
 public:
  explicit Response(Stream& stream) : stream_(stream) {}

  Shape shape;
  std::function<void(int code)> on_head;            // called once, when the status is decided
  std::map<std::string, std::string> more_headers;  // of this answer, whatever it will be

  // Headers are sent in alphabetical order, as Go does. A second begin changes nothing: the status
  // is out.
  void begin(int code, std::map<std::string, std::string> headers);
  bool write(std::string_view data);  // buffered; false: the connection is gone, stop
  bool flush();
  bool end();
  // begin, write and end in one.
  void send(int code, std::map<std::string, std::string> headers, std::string_view body);

  Stream::Wait wait(int wake_fd, int timeout_ms) { return stream_.wait(wake_fd, timeout_ms); }
  void drop();  // cuts the connection now
  bool keep_alive() const { return ended_ && !broken_; }
  bool started() const { return code_ != 0; }
  bool has_unsent() const { return !unsent().empty(); }
  bool broken() const { return broken_; }  // the peer is gone

 private:
  bool send_head(std::string_view length_header);
  bool send_buffer();                       // as one chunk, headed in place
  bool send_chunks(std::string_view data);  // as the shape demands
  std::string_view unsent() const { return std::string_view(buffer_).substr(kHeadRoom); }

  Stream& stream_;
  int code_ = 0;
  std::map<std::string, std::string> headers_;
  // What is sent next, behind room for the head of a chunk: copying it once more to put one in
  // front would be a third of the work of a long list.
  static constexpr std::size_t kHeadRoom = 10;
  std::string buffer_ = std::string(kHeadRoom, '\0');
  bool head_sent_ = false;
  bool ended_ = false;
  bool broken_ = false;
};

// "application/json" and the like, with the headers that every answer of the API server carries.
std::map<std::string, std::string> standard_headers(const std::string& content_type);

}  // namespace shunt::test_api
