// One peer from accept() to close: it may ask once, is answered, and is then waved off.
//
// Never waits. After the answer the sending side is closed and what the peer still sends is thrown
// away: closing at once with bytes unread would make the kernel reset the connection, and a peer
// that is still reading would lose its answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/backoff.h"
#include "base/unique_fd.h"
#include "http/request_parser.h"

namespace shunt::http {

class Connection {
 public:
  enum class Wants : std::uint8_t { ToRead, ToWrite, Nothing };
  // The bytes of the answer to this.
  using Answer = std::function<std::string(const RequestParser&)>;

  Connection(UniqueFd peer, Answer answer, Clock::time_point deadline);

  // When the peer has something, or took something. Nothing: it is over.
  Wants progress();

  int fd() const { return peer_.get(); }
  Clock::time_point deadline() const { return deadline_; }
  std::size_t unsent() const { return out_.size() - sent_; }

 private:
  enum class State : std::uint8_t { Reading, Writing, WavingOff };
  Wants read();
  Wants write();
  Wants wave_off();

  UniqueFd peer_;
  Answer answer_;
  Clock::time_point deadline_;
  State state_ = State::Reading;
  std::unique_ptr<RequestParser> parser_;  // while reading
  std::string out_;
  std::size_t sent_ = 0;
  std::size_t thrown_away_ = 0;
};

}  // namespace shunt::http
