#include "relay/engine.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "relay/sockets.h"

namespace shunt::relay {
namespace {

using log::kv;

constexpr int kAtOnce = 32;  // connections or datagrams, then it is another socket's turn
constexpr std::size_t kLargestDatagram = 65'536;
constexpr Millis kExhaustedPause{500};
constexpr Millis kBetweenComplaints{60'000};

Poller& poller_of(const desired::FrontendKey& key, Poller& tcp, Poller& udp) {
  return key.protocol == net::Protocol::Tcp ? tcp : udp;
}

constexpr std::size_t kForTheRest = 256;

}  // namespace

Limits limits_within(std::size_t descriptors) {
  // Connections take two each: half is for them, a quarter for UDP, and one to listen.
  const std::size_t ours = descriptors - std::min(descriptors / 2, kForTheRest);
  Limits limits;
  limits.connections = std::min(limits.connections, ours / 4);
  limits.udp.flows = std::min(limits.udp.flows, ours / 4);
  return limits;
}

Result<std::unique_ptr<Engine>> Engine::make(Limits limits, Random random, WakeFd& wake) {
  auto poller = Poller::open();
  auto listeners = Poller::open();
  if (!poller || !listeners) {
    return tl::unexpected(poller ? listeners.error() : poller.error());
  }
  std::unique_ptr<Engine> engine(
      new Engine(limits, std::move(random), wake, std::move(*poller), std::move(*listeners)));
  if (!engine->poller_.watch(wake.fd(), engine->on_wake_, EPOLLIN) ||
      !engine->poller_.watch(engine->listeners_.fd(), engine->on_connections_, EPOLLIN)) {
    return fail(Errc::Again, "epoll");
  }
  return engine;
}

Engine::Engine(Limits limits, Random random, WakeFd& wake, Poller poller, Poller listeners)
    : limits_(limits),
      random_(std::move(random)),
      wake_(wake),
      poller_(std::move(poller)),
      listeners_(std::move(listeners)),
      flows_(poller_, limits.udp) {
  on_wake_.act = [this] { wake_.clear(); };
  on_connections_.act = [this] { listeners_.wait(Clock::now()); };
}

Engine::~Engine() = default;

void Engine::set(const desired::FrontendKey& key, std::optional<NodePort> node_port) {
  const auto [it, is_new] = ports_.try_emplace(key);
  Port& port = it->second;
  port.engine = this;
  port.key = key;
  if (node_port) {
    port.service = node_port->service;
    port.choice.set(std::move(node_port->endpoints), node_port->affinity);
  } else {
    port.choice.set(nullptr, std::nullopt);
  }
  // A conversation has no end to wait for: its next datagram finds another endpoint.
  flows_.keep_only(
      key, [&](const net::SocketAddress& endpoint) { return port.choice.contains(endpoint); });
  if (!port.choice.any()) {
    close(port);
  } else if (!port.socket) {
    open(port);
  }
  if (!node_port) {
    ports_.erase(it);
  }
}

void Engine::open(Port& port) {
  const auto fields = {kv("service", port.service), kv("port", desired::to_string(port.key))};
  auto socket = listen_on({loopback(port.key.ip.family), port.key.port}, port.key.protocol);
  Poller& poller = poller_of(port.key, listeners_, poller_);
  if (socket && poller.watch(socket->get(), port, EPOLLIN)) {
    port.socket = std::move(*socket);
    if (unbound_.erase(port.key) != 0) {
      log::info("NodePort is on localhost now", fields);
    }
    return;
  }
  if (unbound_.insert(port.key).second) {
    log::warn(
        "NodePort cannot be on localhost, will try again",
        {kv("service", port.service),
         kv("port", desired::to_string(port.key)),
         kv("error", socket ? "epoll" : socket.error().what)});
  }
  if (!retry_at_) {
    retry_at_ = Clock::now() + limits_.bind_retry;
  }
}

void Engine::close(Port& port) {
  if (port.socket) {
    poller_of(port.key, listeners_, poller_).forget(port.socket.get());
    port.socket.reset();
  }
  unbound_.erase(port.key);
}

void Engine::retry_unbound(Clock::time_point now) {
  if (!retry_at_ || now < *retry_at_) {
    return;
  }
  retry_at_.reset();
  for (const desired::FrontendKey& key : std::vector(unbound_.begin(), unbound_.end())) {
    open(ports_.at(key));
  }
}

void Engine::Port::ready(int, std::uint32_t) {
  if (key.protocol == net::Protocol::Tcp) {
    engine->accept(*this);
  } else {
    engine->take_datagrams(*this);
  }
}

void Engine::accept(Port& port) {
  for (int i = 0; i < kAtOnce && !paused_until_; ++i) {
    if (pairs_.size() >= limits_.connections) {
      pause(Millis{0});  // until one ends
      return;
    }
    auto client = accept_from(port.socket.get());
    if (client) {
      relay(port, std::move(*client));
    } else if (client.error().sys_errno == EAGAIN) {
      return;
    } else if (client.error().code == Errc::Again) {
      exhausted(client.error());
    }  // else that client is gone already
  }
}

void Engine::relay(Port& port, UniqueFd client) {
  const auto endpoint = port.choice.next(Clock::now(), random_());
  auto upstream = endpoint ? connect_to(*endpoint, net::Protocol::Tcp)
                           : Result<UniqueFd>(fail(Errc::NotFound, "no endpoint"));
  if (!upstream) {
    reset_on_close(client.get());
    if (upstream.error().code == Errc::Again) {
      exhausted(upstream.error());
    }
    return;
  }
  auto pair =
      std::make_unique<TcpPair>(poller_, std::move(client), std::move(*upstream), finished_);
  pairs_.emplace(pair.get(), std::move(pair));
}

void Engine::take_datagrams(Port& port) {
  static thread_local std::array<char, kLargestDatagram> buffer;
  const Clock::time_point now = Clock::now();
  for (int i = 0; i < kAtOnce; ++i) {
    net::SocketAddress client;
    const auto size = receive_from(port.socket.get(), buffer, client);
    if (!size) {
      return;
    }
    const std::span datagram = std::span<const char>(buffer).first(*size);
    const UdpFlows::Key key{port.key, client};
    if (flows_.pass_on(key, datagram, now)) {
      continue;
    }
    if (const auto endpoint = port.choice.next(now, random_())) {
      // Without a descriptor the datagram is lost, and the client asks again.
      (void)flows_.begin(key, *endpoint, port.socket.get(), datagram, now);
    }
  }
}

// No descriptors or no memory: trying again at once would fail at once.
void Engine::exhausted(const Error& error) {
  const Clock::time_point now = Clock::now();
  if (!complained_ || now - *complained_ >= kBetweenComplaints) {
    complained_ = now;
    log::warn("NodePorts on localhost take no connections", {kv("error", error.what)});
  }
  pause(kExhaustedPause);
}

void Engine::pause(Millis time) {
  paused_until_ = Clock::now() + time;
  (void)poller_.watch(listeners_.fd(), on_connections_, 0);  // a removal needs no memory
}

void Engine::resume(Clock::time_point now) {
  if (paused_until_ && now >= *paused_until_ && pairs_.size() < limits_.connections) {
    paused_until_.reset();
    if (!poller_.watch(listeners_.fd(), on_connections_, EPOLLIN)) {
      pause(kExhaustedPause);
    }
  }
}

void Engine::sweep() {
  for (const TcpPair* pair : finished_) {
    pairs_.erase(pair);
  }
  finished_.clear();
}

std::optional<Clock::time_point> Engine::due() const {
  std::optional<Clock::time_point> next = flows_.due();
  const auto sooner = [&](const std::optional<Clock::time_point>& other) {
    if (other && (!next || *other < *next)) {
      next = other;
    }
  };
  sooner(retry_at_);
  if (pairs_.size() < limits_.connections) {  // else the end of one wakes us
    sooner(paused_until_);
  }
  return next;
}

void Engine::step() {
  poller_.wait(due());
  sweep();
  const Clock::time_point now = Clock::now();
  flows_.expire(now);
  retry_unbound(now);
  resume(now);
}

}  // namespace shunt::relay
