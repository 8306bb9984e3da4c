// What the daemon shows to the outside: /healthz and its like, the metrics, the health ports of
// Services, the status socket. Outlives generations, so that nobody's probe is refused while the
// inner parts are built anew.
//
// Made and changed by the main thread; servers ask whichever generation is shown at the time.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "app/generation.h"
#include "app/watcher.h"
#include "base/published.h"
#include "config/options.h"
#include "health/status_server.h"
#include "http/server.h"

namespace shunt::app {

class Front {
 public:
  // `cannot_listen` is called on the main thread, during start() and apply(), when an address
  // cannot be bound at the first try: with bindAddressHardFail that is the end, otherwise it is
  // tried again.
  using CannotListen = std::function<void(const kube::Notice&, const Error&)>;

  static Result<std::unique_ptr<Front>> start(
      const config::Options& options, CannotListen cannot_listen);
  ~Front();
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  // Servers move to other addresses where the options say so.
  void apply(const config::Options& options);
  // Whom servers ask from now on; null: nobody. The one before is no longer used, except by a
  // request that is being answered.
  void show(std::shared_ptr<Generation> generation);

  Watcher& watcher() { return *watcher_; }
  obs::Metrics& metrics() { return *metrics_; }
  SourceHooks source_hooks();

 private:
  explicit Front(CannotListen cannot_listen) : cannot_listen_(std::move(cannot_listen)) {}
  Result<> build(const config::Options& options);
  obs::Suppliers suppliers();
  health::Readiness readiness();
  http::Service metrics_service(const config::Options& options);
  void listen(
      http::Server& server,
      std::optional<http::Server::ListenerId>& listener,
      const std::optional<net::SocketAddress>& address,
      const http::Service& service,
      const char* reason);

  CannotListen cannot_listen_;
  std::string node_name_;
  // In this order: what servers call outlives them.
  std::mutex shown_mutex_;
  std::shared_ptr<Generation> shown_;
  std::shared_ptr<Generation> shown() {
    const std::lock_guard lock(shown_mutex_);
    return shown_;
  }
  Published<config::Options> options_;
  std::shared_ptr<std::atomic<std::uint64_t>> pings_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);
  std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
  std::unique_ptr<health::HealthState> health_;
  std::unique_ptr<obs::Metrics> metrics_;
  std::unique_ptr<http::Server> health_server_;
  std::unique_ptr<http::Server> metrics_server_;
  std::optional<http::Server::ListenerId> health_listener_;
  std::optional<http::Server::ListenerId> metrics_listener_;
  std::unique_ptr<health::ServiceHealth> services_;
  std::unique_ptr<Watcher> watcher_;
  std::unique_ptr<health::StatusServer> status_server_;
};

}  // namespace shunt::app
