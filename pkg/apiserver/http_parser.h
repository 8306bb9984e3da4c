// HTTP/1.1 responses from bytes: the head, and where the body ends. Pure.
//
// Strict where leniency has bitten others: no folded headers, no second Content-Length that
// differs, no transfer coding but chunked, bounded head and chunk lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace shunt::apiserver {

struct HttpHead {
  int status = 0;
  bool keep_alive = true;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case

  std::string_view header(std::string_view lower_case_name) const;  // "" when absent
};

// `text` ends before the empty line.
Result<HttpHead> parse_http_head(std::string_view text);

// Feed it what the connection gives; it calls back with the head once, then with pieces of body.
class HttpResponseParser {
 public:
  static constexpr std::size_t kMaxHead = std::size_t{64} << 10;
  static constexpr std::size_t kMaxChunkLine = 256;

  // Return false to stop: the rest is not looked at.
  using OnHead = std::function<bool(const HttpHead&)>;
  using OnBody = std::function<bool(std::string_view)>;
  HttpResponseParser(OnHead on_head, OnBody on_body);

  Result<> feed(std::string_view bytes);
  // The connection ended in good order. An error (ECONNRESET) when the response is not complete.
  Result<> finish();

  bool complete() const { return state_ == State::Complete; }
  bool stopped() const { return stopped_; }  // a callback returned false
  bool has_head() const { return state_ != State::Head; }
  // The connection can carry another request.
  bool reusable() const { return complete() && keep_alive_ && !excess_; }

 private:
  enum class State : std::uint8_t {
    Head,
    Sized,
    UntilClose,
    ChunkSize,
    ChunkData,
    ChunkEnd,
    Trailer,
    Complete
  };

  Result<> feed_head(std::string_view& bytes);
  Result<> start_body(const HttpHead& head);
  Result<> feed_chunk_size(std::string_view& bytes);
  Result<> feed_trailer(std::string_view& bytes);
  // Moves the next line out of `bytes` into line_; nothing while it is unfinished.
  Result<bool> take_line(std::string_view& bytes, std::size_t limit);
  void feed_data(std::string_view& bytes, State next);

  OnHead on_head_;
  OnBody on_body_;
  State state_ = State::Head;
  std::string line_;  // the unfinished head or line
  std::uint64_t remaining_ = 0;
  std::size_t trailer_bytes_ = 0;
  int informational_ = 0;
  bool keep_alive_ = false;
  bool stopped_ = false;
  bool excess_ = false;
};

}  // namespace shunt::apiserver
