// A small HTTP/1.1 server: one thread and one epoll for any number of listeners.
//
// Why our own and not cpp-httplib: health ports are open to the world, and a pool of threads is
// blocked by as many slow peers as it has threads; and a healthCheckNodePort is a listener of its
// own, of which a cluster has hundreds, which must not cost a thread each.
//
// Peers are hostile. A connection carries one request and is closed; it has `patience` in all, a
// head of 8 KiB, a body of 1 KiB. There are `connections` of them at most, and `unsent_bytes` of
// answers that were not taken yet: the one that is there longest goes first. A peer that asks and
// reads as it should is done within milliseconds, so it is never the one.
//
// Handlers run on the server's thread, one at a time, and hold up all other peers: they must not
// wait. Give pages that take long (/metrics) a server of their own, or /healthz waits for them.
//
// listen() and close() may be called from any thread, also from a handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/backoff.h"
#include "base/result.h"
#include "http/listen_socket.h"
#include "http/message.h"

namespace shunt::http {

using Handler = std::function<Response(const Request&)>;

struct Service {
  Handler handler;
  // Else GET and HEAD alone come through, and 405 is answered for the handler. HEAD is answered as
  // GET is, without the body; the handler need not care.
  bool any_method = false;
};

struct Limits {
  std::size_t connections = 512;
  std::size_t unsent_bytes = std::size_t{64} << 20;
  Millis patience{10'000};
  Millis bind_again{5'000};
};

class Server {
 public:
  using ListenerId = std::uint64_t;

  // `thread_name`: at most 15 characters.
  static Result<std::unique_ptr<Server>> start(const std::string& thread_name, Limits limits = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Binds at once or not at all.
  Result<ListenerId> listen(const ListenAddress& address, Service service);

  // Tries at once, and after a failure every Limits::bind_again until it works or is closed.
  // `first_failure` is called before this returns, on the caller's thread, when the first try
  // fails.
  ListenerId keep_listening(
      const ListenAddress& address,
      Service service,
      const std::function<void(const Error&)>& first_failure = {});

  // The address is free when this returns, and connections that were accepted are dropped soon. A
  // request that was under way may still reach the handler, so what that uses must outlive the
  // server or be shared with it. Unknown ids are fine.
  void close(ListenerId id);

  bool listening(ListenerId id) const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace shunt::http
