#include "relay/tcp_pair.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "relay/sockets.h"

namespace shunt::relay {
namespace {

bool is_for_later(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

TcpPair::TcpPair(
    Poller& poller, UniqueFd client, UniqueFd upstream, std::vector<const TcpPair*>& finished)
    : poller_(poller),
      client_(std::move(client)),
      upstream_(std::move(upstream)),
      finished_pairs_(finished) {
  if (!update_interest()) {
    abort();
  }
}

TcpPair::~TcpPair() {
  poller_.forget(client_.get());
  poller_.forget(upstream_.get());
}

void TcpPair::ready(int fd, std::uint32_t events) {
  if (finished_) {
    return;
  }
  bool fine = !connecting_ || established();
  const bool may_read = (events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0;
  const bool is_client = fd == client_.get();
  Direction& from_here = is_client ? up_ : down_;
  Direction& to_here = is_client ? down_ : up_;
  const int other = is_client ? upstream_.get() : client_.get();
  fine = fine && write(fd, to_here);
  if (may_read && from_here.waiting.empty() && !from_here.ended) {
    fine = fine && read(fd, other, from_here);
  }
  if (fine && up_.passed && down_.passed) {
    finish();
  } else if (!fine || !update_interest()) {
    abort();
  }
}

// Only the upstream socket is watched until it is connected.
bool TcpPair::established() {
  connecting_ = false;
  return connect_error(upstream_.get()) == 0;
}

bool TcpPair::read(int from, int to, Direction& direction) {
  static thread_local std::array<char, kRead> buffer;
  const ssize_t got = ::recv(from, buffer.data(), buffer.size(), 0);
  if (got < 0) {
    return is_for_later(errno);
  }
  if (got == 0) {
    direction.ended = true;
  } else {
    direction.waiting.assign(buffer.data(), static_cast<std::size_t>(got));
  }
  return write(to, direction);
}

bool TcpPair::write(int to, Direction& direction) {
  if (!direction.waiting.empty()) {
    const ssize_t put =
        ::send(to, direction.waiting.data(), direction.waiting.size(), MSG_NOSIGNAL);
    if (put < 0) {
      return is_for_later(errno);
    }
    direction.waiting.erase(0, static_cast<std::size_t>(put));
    if (direction.waiting.empty()) {
      direction.waiting.shrink_to_fit();  // a quiet connection holds no memory
    }
  }
  if (direction.waiting.empty() && direction.ended && !direction.passed) {
    direction.passed = true;
    return ::shutdown(to, SHUT_WR) == 0;
  }
  return true;
}

bool TcpPair::update_interest() {
  if (connecting_) {
    return poller_.watch(upstream_.get(), *this, EPOLLOUT);
  }
  const auto interest = [](const Direction& in, const Direction& out) {
    return (in.waiting.empty() && !in.ended ? EPOLLIN : 0U) | (out.waiting.empty() ? 0U : EPOLLOUT);
  };
  return poller_.watch(client_.get(), *this, interest(up_, down_)) &&
         poller_.watch(upstream_.get(), *this, interest(down_, up_));
}

void TcpPair::abort() {
  reset_on_close(client_.get());
  reset_on_close(upstream_.get());
  finish();
}

void TcpPair::finish() {
  poller_.forget(client_.get());
  poller_.forget(upstream_.get());
  finished_ = true;
  finished_pairs_.push_back(this);
}

}  // namespace shunt::relay
