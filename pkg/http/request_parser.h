// One HTTP/1 request from the bytes of anybody. Pure; no input makes it crash, wait or grow.
//
// Lenient where people are (a bare LF ends a line, as nc sends it), strict where leniency has
// bitten others: no folded headers, one length at most, no transfer coding. A body is small or
// refused. What follows the request is never looked at: a connection carries one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/message.h"

namespace shunt::http {

class RequestParser {
 public:
  static constexpr std::size_t kMaxHead = std::size_t{8} << 10;
  static constexpr std::size_t kMaxBody = std::size_t{1} << 10;
  static constexpr std::size_t kMaxHeaders = 100;

  enum class State : std::uint8_t { Unfinished, Complete, Refused };

  // What the peer sent next; once it is not Unfinished, more changes nothing.
  State feed(std::string_view bytes);

  State state() const { return state_; }
  const Request& request() const { return request_; }  // when Complete
  int refusal() const { return refusal_; }             // when Refused: the status to answer with

 private:
  void refuse(int status);
  bool take_head();
  void parse_head(std::string_view head);
  bool parse_request_line(std::string_view line);
  bool parse_header(std::string_view line);
  bool parse_target(std::string_view target);
  void find_body();

  State state_ = State::Unfinished;
  bool has_head_ = false;
  std::string buffer_;       // the head while it is unfinished, then the body
  std::size_t scanned_ = 0;  // of buffer_: the head does not end before this
  std::size_t body_size_ = 0;
  int refusal_ = 0;
  Request request_;
};

}  // namespace shunt::http
