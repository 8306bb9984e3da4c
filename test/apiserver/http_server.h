// A small threaded HTTP/1.1 server: one thread a connection, so that a handler may block for as
// long as a watch lives. Our own because tests need what a library hides: closing at accept,
// cutting in the middle of a chunk, resets, noticing that the client of an idle watch left, and a
// stop that cuts everything at once, as a dying API server does.
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/wake_fd.h"
#include "net/socket_address.h"
#include "test/apiserver/request.h"
#include "test/apiserver/response.h"

namespace shunt::test_api {

class HttpServer {
 public:
  using Handler = std::function<void(const Request&, Response&)>;
  using Refuse = std::function<bool()>;  // asked for each accepted TLS connection

  HttpServer(Handler handler, Refuse refuse)
      : handler_(std::move(handler)), refuse_(std::move(refuse)) {}
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer() { stop(); }

  // Binds and starts to accept; answers the bound address (port 0 becomes a real one). A null
  // context means plain HTTP: such requests are marked `trusted_port`.
  Result<net::SocketAddress> listen(
      const net::SocketAddress& address, const std::shared_ptr<SSL_CTX>& context);
  void stop();  // cuts every connection and joins every thread

 private:
  struct Connection {
    explicit Connection(UniqueFd fd) : stream(std::move(fd)) {}
    Stream stream;
    std::atomic<bool> done = false;
    std::thread thread;
  };
  void accept_loop(int listen_fd, SSL_CTX* context);
  void start(UniqueFd fd, SSL_CTX* context);
  void serve(Connection& connection, SSL_CTX* context);
  void reap();

  Handler handler_;
  Refuse refuse_;
  WakeFd stop_;
  std::vector<UniqueFd> listeners_;
  std::vector<std::shared_ptr<SSL_CTX>> contexts_;
  std::vector<std::thread> acceptors_;
  std::mutex mutex_;  // guards connections_
  std::list<Connection> connections_;
};

}  // namespace shunt::test_api
