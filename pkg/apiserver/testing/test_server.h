// A server on loopback for the tests of the HTTP client: one thread a connection, and the test says
// byte by byte what it answers, late, badly or not at all.
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "apiserver/testing/certificates.h"
#include "base/handle.h"
#include "base/unique_fd.h"

namespace shunt::apiserver::testing {

class Peer {
 public:
  Peer(int fd, SSL* ssl) : fd_(fd), ssl_(ssl) {}

  // The next request, head and body; nothing when the client has gone.
  std::optional<std::string> request();
  void send(std::string_view bytes);
  void answer(int status, std::string_view body, std::string_view headers = "");
  void chunk(std::string_view bytes);
  std::string client_name() const;  // the common name of its certificate, or ""
  void goodbye();                   // TLS's close_notify
  void hang();                      // until the client closes or the server ends

 private:
  int fd_;
  SSL* ssl_;
};

class TestServer {
 public:
  using Handler = std::function<void(Peer&)>;

  struct Options {
    bool ipv6 = false;
    // Without a certificate it speaks plain HTTP (or nothing, as the handler likes).
    std::optional<Issued> certificate{};
    std::string client_ca{};  // PEM: ask clients for a certificate
  };
  TestServer(Options options, Handler handler);
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  int port() const { return port_; }
  std::string url() const;  // by address
  int connections() const { return connections_; }

 private:
  void accept_all();
  void serve(int fd);

  Options options_;
  Handler handler_;
  Handle<SSL_CTX, SSL_CTX_free> context_;
  UniqueFd listener_;
  int port_ = 0;
  std::atomic<int> connections_{0};
  std::mutex mutex_;
  std::vector<UniqueFd> sockets_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace shunt::apiserver::testing
