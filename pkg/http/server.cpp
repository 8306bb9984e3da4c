#include "http/server.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/wake_fd.h"
#include "http/connection.h"

namespace shunt::http {
namespace {

using log::kv;
using Id = std::uint64_t;

// What epoll says is an id and never a descriptor: a number that was closed and given out again
// cannot be taken for the old one.
constexpr Id kWake = 0;
constexpr Id kListeners = 1;
constexpr Id kFirstId = 2;

constexpr int kAcceptAtOnce = 64;
constexpr Millis kPauseWithoutDescriptors{100};

bool epoll_set(const UniqueFd& epoll, int operation, int fd, std::uint32_t events, Id id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return ::epoll_ctl(epoll.get(), operation, fd, &event) == 0;
}

Response refused(int status) {
  return {status, "text/plain; charset=utf-8", std::to_string(status) + "\n"};
}

Response answer(const Service& service, const Request& request) {
  if (!service.any_method && request.method != "GET" && request.method != "HEAD") {
    return method_not_allowed("GET, HEAD");
  }
  try {
    return service.handler(request);
  } catch (const std::exception& error) {  // of a library that a handler uses
    log::error("an HTTP handler failed", {kv("path", request.path), kv("error", error.what())});
    return refused(500);
  }
}

}  // namespace

class Server::Impl {
 public:
  Impl(UniqueFd epoll, UniqueFd listeners_epoll, Limits limits)
      : limits_(limits), epoll_(std::move(epoll)), listeners_epoll_(std::move(listeners_epoll)) {}

  Result<> start(const std::string& thread_name) {
    if (!epoll_set(epoll_, EPOLL_CTL_ADD, wake_.fd(), EPOLLIN, kWake) ||
        !epoll_set(epoll_, EPOLL_CTL_ADD, listeners_epoll_.get(), EPOLLIN, kListeners)) {
      return fail(Errc::Again, std::string("epoll: ") + std::strerror(errno), errno);
    }
    thread_ = std::thread([this, thread_name] {
      (void)::pthread_setname_np(::pthread_self(), thread_name.c_str());  // a name is a nicety
      run();
    });
    return {};
  }

  void stop() {
    stopping_ = true;
    wake_.ring();
    thread_.join();
  }

  // Any thread.
  std::pair<ListenerId, Result<>> add(const ListenAddress& address, Service service, bool keep) {
    const std::lock_guard lock(mutex_);
    const Id id = next_listener_++;
    Listener listener{address, std::make_shared<const Service>(std::move(service)), {}, {}};
    const Result<> opened = open(listener, id);
    if (opened || keep) {
      listeners_.emplace(id, std::move(listener));
    }
    if (!opened && keep) {
      wake_.ring();  // to wait for the next try
    }
    return {id, opened};
  }

  void close(ListenerId id) {
    {
      const std::lock_guard lock(mutex_);
      if (listeners_.erase(id) == 0) {
        return;
      }
      closed_ = true;
    }
    wake_.ring();
  }

  bool listening(ListenerId id) const {
    const std::lock_guard lock(mutex_);
    const auto it = listeners_.find(id);
    return it != listeners_.end() && it->second.socket;
  }

 private:
  struct Listener {
    ListenAddress address;
    std::shared_ptr<const Service> service;
    UniqueFd socket;
    std::optional<Clock::time_point> again_at;  // while there is no socket
  };
  struct Peer {
    Id listener = 0;
    Connection connection;
  };
  using Peers = std::map<Id, Peer>;

  // With the mutex held.
  Result<> open(Listener& listener, Id id) {
    auto socket = listen_on(listener.address);
    if (socket && !epoll_set(listeners_epoll_, EPOLL_CTL_ADD, socket->get(), EPOLLIN, id)) {
      socket = fail(Errc::Again, std::string("epoll: ") + std::strerror(errno), errno);
    }
    if (!socket) {
      listener.again_at = Clock::now() + limits_.bind_again;
      return tl::unexpected(socket.error());
    }
    listener.socket = std::move(*socket);
    listener.again_at.reset();
    return {};
  }

  void run() {
    while (!stopping_) {
      std::array<epoll_event, 64> events{};
      const int count =
          ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout());
      for (int i = 0; i < count; ++i) {  // EINTR: look around
        handle(events.at(static_cast<std::size_t>(i)).data.u64);
      }
      drop_those_of_closed_listeners();
      drop_late_ones(Clock::now());
      open_again(Clock::now());
      end_pause(Clock::now());
    }
  }

  void handle(Id id) {
    if (id == kWake) {
      wake_.clear();
    } else if (id == kListeners) {
      accept_waiting();
    } else if (const auto it = peers_.find(id); it != peers_.end()) {
      progress(it);
    }
  }

  int timeout() const {
    std::optional<Clock::time_point> until = pause_until_;
    const auto sooner = [&](const std::optional<Clock::time_point>& other) {
      until = until && other ? std::min(*until, *other) : other ? other : until;
    };
    if (!peers_.empty()) {  // the first is the oldest, and all have the same patience
      sooner(peers_.begin()->second.connection.deadline());
    }
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [id, listener] : listeners_) {
        sooner(listener.again_at);
      }
    }
    if (!until) {
      return -1;
    }
    const auto left = std::chrono::ceil<Millis>(*until - Clock::now()).count();
    return static_cast<int>(std::clamp<Millis::rep>(left, 0, 60'000));
  }

  void accept_waiting() {
    std::array<epoll_event, 64> ready{};
    const int count =
        ::epoll_wait(listeners_epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
    for (int i = 0; i < count; ++i) {
      const Id id = ready.at(static_cast<std::size_t>(i)).data.u64;
      for (int n = 0; n < kAcceptAtOnce && accept_one(id); ++n) {
      }
    }
  }

  bool accept_one(Id id) {
    std::shared_ptr<const Service> service;
    UniqueFd peer;
    int error = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto it = listeners_.find(id);
      if (it == listeners_.end() || !it->second.socket) {
        return false;
      }
      peer.reset(
          ::accept4(it->second.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      error = errno;
      service = it->second.service;
    }
    if (!peer) {
      return explain_no_peer(error);
    }
    admit(id, std::move(service), std::move(peer));
    return true;
  }

  // Whether to try the next one.
  bool explain_no_peer(int error) {
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
      if (peers_.empty()) {
        pause();
        return false;
      }
      drop(peers_.begin());
      return true;
    }
    return error == ECONNABORTED || error == EINTR;
  }

  void admit(Id listener, std::shared_ptr<const Service> service, UniqueFd peer) {
    while (peers_.size() >= limits_.connections) {
      drop(peers_.begin());
    }
    const Id id = next_peer_++;
    Connection connection(
        std::move(peer),
        [service = std::move(service)](const RequestParser& parser) {
          return parser.state() == RequestParser::State::Refused
                     ? to_bytes(refused(parser.refusal()), true)
                     : to_bytes(
                           answer(*service, parser.request()), parser.request().method != "HEAD");
        },
        Clock::now() + limits_.patience);
    const auto it = peers_.emplace_hint(peers_.end(), id, Peer{listener, std::move(connection)});
    if (!epoll_set(epoll_, EPOLL_CTL_ADD, it->second.connection.fd(), EPOLLIN, id)) {
      peers_.erase(it);
    }
  }

  void progress(Peers::iterator it) {
    const Id id = it->first;
    Connection& connection = it->second.connection;
    const std::size_t before = connection.unsent();
    const Connection::Wants wants = connection.progress();
    unsent_ += connection.unsent();
    unsent_ -= before;
    if (wants == Connection::Wants::Nothing) {
      drop(it);
      return;
    }
    const std::uint32_t events = wants == Connection::Wants::ToWrite ? EPOLLOUT : EPOLLIN;
    if (!epoll_set(epoll_, EPOLL_CTL_MOD, connection.fd(), events, id)) {
      drop(it);
      return;
    }
    drop_those_who_do_not_read(id);
  }

  // All but the one that was just answered: an answer that is larger than the limit can be read.
  void drop_those_who_do_not_read(Id but) {
    for (auto it = peers_.begin(); it != peers_.end() && unsent_ > limits_.unsent_bytes;) {
      const auto next = std::next(it);
      if (it->first != but && it->second.connection.unsent() != 0) {
        drop(it);
      }
      it = next;
    }
  }

  void drop(Peers::iterator it) {
    unsent_ -= it->second.connection.unsent();
    peers_.erase(it);
  }

  void drop_late_ones(Clock::time_point now) {
    while (!peers_.empty() && peers_.begin()->second.connection.deadline() <= now) {
      drop(peers_.begin());
    }
  }

  void drop_those_of_closed_listeners() {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(closed_, false)) {
      return;
    }
    for (auto it = peers_.begin(); it != peers_.end();) {
      const auto next = std::next(it);
      if (!listeners_.contains(it->second.listener)) {
        drop(it);
      }
      it = next;
    }
  }

  void open_again(Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    for (auto& [id, listener] : listeners_) {
      if (listener.again_at && *listener.again_at <= now && open(listener, id)) {
        log::info("listening after all", {kv("address", to_string(listener.address))});
      }
    }
  }

  // Without descriptors and without a peer to give one up, a waiting client would make us spin.
  void pause() {
    pause_until_ = Clock::now() + kPauseWithoutDescriptors;
    (void)epoll_set(epoll_, EPOLL_CTL_MOD, listeners_epoll_.get(), 0, kListeners);
  }

  void end_pause(Clock::time_point now) {
    if (pause_until_ && *pause_until_ <= now) {
      pause_until_.reset();
      (void)epoll_set(epoll_, EPOLL_CTL_MOD, listeners_epoll_.get(), EPOLLIN, kListeners);
    }
  }

  const Limits limits_;
  UniqueFd epoll_;
  UniqueFd listeners_epoll_;  // inside the other, so that all listeners can be paused at once
  WakeFd wake_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;

  mutable std::mutex mutex_;  // guards the next three; no handler runs under it
  std::map<Id, Listener> listeners_;
  Id next_listener_ = kFirstId;
  bool closed_ = false;

  // The thread's own.
  Peers peers_;  // by age
  Id next_peer_ = kFirstId;
  std::size_t unsent_ = 0;
  std::optional<Clock::time_point> pause_until_;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Server>> Server::start(const std::string& thread_name, Limits limits) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  UniqueFd listeners_epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll || !listeners_epoll) {
    return fail(Errc::Again, std::string("epoll: ") + std::strerror(errno), errno);
  }
  auto impl = std::make_unique<Impl>(std::move(epoll), std::move(listeners_epoll), limits);
  if (auto started = impl->start(thread_name); !started) {
    return tl::unexpected(started.error());
  }
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::~Server() { impl_->stop(); }

Result<Server::ListenerId> Server::listen(const ListenAddress& address, Service service) {
  const auto [id, opened] = impl_->add(address, std::move(service), false);
  if (!opened) {
    return tl::unexpected(opened.error());
  }
  return id;
}

Server::ListenerId Server::keep_listening(
    const ListenAddress& address,
    Service service,
    const std::function<void(const Error&)>& first_failure) {
  const auto [id, opened] = impl_->add(address, std::move(service), true);
  if (!opened) {
    log::warn("cannot listen, will try again", {kv("error", opened.error().what)});
    if (first_failure) {
      first_failure(opened.error());
    }
  }
  return id;
}

void Server::close(ListenerId id) { impl_->close(id); }

bool Server::listening(ListenerId id) const { return impl_->listening(id); }

}  // namespace shunt::http
