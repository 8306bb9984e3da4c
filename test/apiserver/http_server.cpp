#include "test/apiserver/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace shunt::test_api {
namespace {

struct RawAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

RawAddress to_raw(const net::SocketAddress& address) {
  RawAddress raw;
  if (address.ip.family == net::Family::IPv4) {
    auto* in = reinterpret_cast<sockaddr_in*>(&raw.storage);
    in->sin_family = AF_INET;
    in->sin_port = htons(net::number(address.port));
    std::memcpy(&in->sin_addr, address.ip.bytes.data(), 4);
    raw.size = sizeof *in;
  } else {
    auto* in = reinterpret_cast<sockaddr_in6*>(&raw.storage);
    in->sin6_family = AF_INET6;
    in->sin6_port = htons(net::number(address.port));
    std::memcpy(&in->sin6_addr, address.ip.bytes.data(), 16);
    raw.size = sizeof *in;
  }
  return raw;
}

net::Port bound_port(int fd) {
  RawAddress raw;
  raw.size = sizeof raw.storage;
  if (::getsockname(fd, raw.get(), &raw.size) != 0) {
    return net::Port{0};
  }
  return net::Port{ntohs(
      raw.storage.ss_family == AF_INET
          ? reinterpret_cast<const sockaddr_in*>(&raw.storage)->sin_port
          : reinterpret_cast<const sockaddr_in6*>(&raw.storage)->sin6_port)};
}

}  // namespace

Result<net::SocketAddress> HttpServer::listen(
    const net::SocketAddress& address, const std::shared_ptr<SSL_CTX>& context) {
  // OpenSSL writes with write(2): a client that left must not end the process.
  (void)std::signal(SIGPIPE, SIG_IGN);
  RawAddress raw = to_raw(address);
  UniqueFd fd(::socket(raw.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  // REUSEADDR: a restarted server must get its port back while old connections are in TIME_WAIT.
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(fd.get(), raw.get(), raw.size) != 0 || ::listen(fd.get(), 1024) != 0) {
    return fail(
        Errc::Invalid, "listen on " + net::to_string(address) + ": " + std::strerror(errno), errno);
  }
  net::SocketAddress bound = address;
  bound.port = bound_port(fd.get());
  listeners_.push_back(std::move(fd));
  contexts_.push_back(context);
  acceptors_.emplace_back([this, listener = listeners_.back().get(), tls = context.get()] {
    accept_loop(listener, tls);
  });
  return bound;
}

void HttpServer::accept_loop(int listen_fd, SSL_CTX* context) {
  for (;;) {
    std::array<pollfd, 2> fds{pollfd{stop_.fd(), POLLIN, 0}, pollfd{listen_fd, POLLIN, 0}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) {
      return;
    }
    if (fds[0].revents != 0) {
      return;  // nobody clears the bell: every acceptor sees it
    }
    UniqueFd fd(::accept4(listen_fd, nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd) {
      continue;
    }
    reap();
    if (context != nullptr && refuse_()) {
      continue;
    }
    start(std::move(fd), context);
  }
}

void HttpServer::start(UniqueFd fd, SSL_CTX* context) {
  const int on = 1;
  // A watch event is one small write: Nagle would hold it back.
  (void)::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const std::lock_guard lock(mutex_);
  Connection& connection = connections_.emplace_back(std::move(fd));
  connection.thread = std::thread([this, &connection, context] {
    serve(connection, context);
    connection.stream.close();
    connection.done = true;
  });
}

void HttpServer::serve(Connection& connection, SSL_CTX* context) {
  Stream& stream = connection.stream;
  if (context != nullptr && !stream.handshake(context)) {
    return;
  }
  const auto certificate = stream.client_certificate();
  RequestReader reader(stream);
  for (auto request = reader.next(); request; request = reader.next()) {
    request->certificate = certificate;
    request->trusted_port = context == nullptr;
    Response response(stream);
    handler_(*request, response);
    if (!response.keep_alive() || request->header("connection") == "close") {
      return;
    }
  }
}

void HttpServer::reap() {
  const std::lock_guard lock(mutex_);
  for (auto it = connections_.begin(); it != connections_.end();) {
    if (it->done) {
      it->thread.join();
      it = connections_.erase(it);
    } else {
      ++it;
    }
  }
}

void HttpServer::stop() {
  stop_.ring();
  for (std::thread& acceptor : acceptors_) {
    acceptor.join();
  }
  acceptors_.clear();
  listeners_.clear();
  const std::lock_guard lock(mutex_);  // no acceptor is left, so nobody else wants it
  for (Connection& connection : connections_) {
    connection.stream.interrupt();
  }
  for (Connection& connection : connections_) {
    connection.thread.join();
  }
  connections_.clear();
}

}  // namespace shunt::test_api
