#include "http/connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace shunt::http {
namespace {

using Buffer = std::array<char, 4096>;
constexpr std::size_t kThrowAwayAtMost = std::size_t{64} << 10;

// Negative: nothing now, try again; 0: the end, orderly or not.
ssize_t receive(int fd, Buffer& buffer) {
  for (;;) {
    const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (got >= 0) {
      return got;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return -1;
    }
    if (errno != EINTR) {
      return 0;
    }
  }
}

}  // namespace

Connection::Connection(UniqueFd peer, Answer answer, Clock::time_point deadline)
    : peer_(std::move(peer)),
      answer_(std::move(answer)),
      deadline_(deadline),
      parser_(std::make_unique<RequestParser>()) {}

Connection::Wants Connection::progress() {
  switch (state_) {
    case State::Reading:
      return read();
    case State::Writing:
      return write();
    case State::WavingOff:
      return wave_off();
  }
  return Wants::Nothing;
}

Connection::Wants Connection::read() {
  Buffer buffer;
  while (parser_->state() == RequestParser::State::Unfinished) {
    const ssize_t got = receive(peer_.get(), buffer);
    if (got <= 0) {
      return got < 0 ? Wants::ToRead : Wants::Nothing;
    }
    parser_->feed({buffer.data(), static_cast<std::size_t>(got)});
  }
  out_ = answer_(*parser_);
  parser_.reset();
  answer_ = nullptr;
  state_ = State::Writing;
  return write();
}

Connection::Wants Connection::write() {
  while (sent_ < out_.size()) {
    const ssize_t sent =
        ::send(peer_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      sent_ += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return Wants::ToWrite;
    } else if (errno != EINTR) {
      return Wants::Nothing;
    }
  }
  std::string().swap(out_);
  sent_ = 0;
  (void)::shutdown(peer_.get(), SHUT_WR);  // a peer that left is found out when it is read from
  state_ = State::WavingOff;
  return wave_off();
}

Connection::Wants Connection::wave_off() {
  Buffer buffer;
  while (thrown_away_ < kThrowAwayAtMost) {
    const ssize_t got = receive(peer_.get(), buffer);
    if (got <= 0) {
      return got < 0 ? Wants::ToRead : Wants::Nothing;
    }
    thrown_away_ += static_cast<std::size_t>(got);
  }
  return Wants::Nothing;
}

}  // namespace shunt::http
