// One accepted connection, TLS or plain, as blocking bytes. Owned by the connection's thread; only
// `interrupt` may be called by another.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.h"
#include "base/unique_fd.h"

namespace shunt::test_api {

// What a client certificate says about its holder. `trusted` is false when our CA did not sign it:
// like the real server we let the handshake pass and answer 401.
struct ClientCertificate {
  std::string common_name;
  std::vector<std::string> organizations;
  bool trusted = false;
};

class Stream {
 public:
  explicit Stream(UniqueFd fd) : fd_(std::move(fd)) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { close(); }

  bool handshake(SSL_CTX* context);  // false: not a TLS client, or it went away
  bool is_tls() const { return ssl_ != nullptr; }
  std::optional<ClientCertificate> client_certificate() const;

  std::size_t read(char* data, std::size_t size);  // 0: the peer is gone
  bool write(std::string_view data);

  // Waits until `wake_fd` (-1: none) is readable, `timeout_ms` (-1: for ever) is over, or the peer
  // is gone.
  enum class Wait { Woken, TimedOut, Gone };
  Wait wait(int wake_fd, int timeout_ms);

  void close(bool reset = false);  // no TLS close_notify: the peer sees a connection cut
  void interrupt();                // any thread: makes every blocked call return

 private:
  bool peer_gone();

  std::mutex close_mutex_;  // keeps `interrupt` away from a descriptor number that was reused
  UniqueFd fd_;
  Handle<SSL, SSL_free> ssl_;
  bool peer_talked_ = false;  // bytes wait for the next request: stop asking for readability
};

}  // namespace shunt::test_api
