#include "bench/suite/prober.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <cstring>
#include <thread>

#include "bench/suite/client.h"
#include "netns/sockets.h"

namespace shunt::bench {
namespace {

// A packet that takes longer has been dropped, or waits for a processor.
constexpr Nanoseconds kPatience = 200'000;
constexpr std::chrono::microseconds kBetweenProbes{30};

}  // namespace

Prober::Prober(
    const lab::Netns& pods,
    net::Protocol protocol,
    const net::SocketAddress& service,
    const std::vector<net::SocketAddress>& endpoints)
    : protocol_(protocol), service_(service) {
  listeners_ = pods.run([&] {
    std::vector<UniqueFd> out;
    for (const net::SocketAddress& endpoint : endpoints) {
      out.push_back(lab::open_listener(protocol, endpoint));
    }
    return out;
  });
}

std::optional<std::size_t> Prober::arrival() {
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    if (protocol_ == net::Protocol::Tcp) {
      const UniqueFd peer(::accept4(listeners_[i].get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (peer) {
        return i;
      }
      continue;
    }
    std::uint32_t received = 0;
    while (::recv(listeners_[i].get(), &received, sizeof received, MSG_DONTWAIT) > 0) {
      if (received == sequence_) {  // else a straggler of an earlier probe
        return i;
      }
    }
  }
  return std::nullopt;
}

void Prober::drain() {
  while (protocol_ == net::Protocol::Tcp && arrival()) {
  }
}

std::optional<std::size_t> Prober::probe() {
  drain();
  ++sequence_;
  const UniqueFd client = open_client(protocol_, false);
  const lab::RawAddress to = lab::to_raw(service_);
  // A refusal is an answer like any other: nobody was reached.
  (void)::connect(client.get(), to.get(), to.length);
  if (protocol_ == net::Protocol::Udp) {
    (void)::send(client.get(), &sequence_, sizeof sequence_, MSG_NOSIGNAL);
  }
  const Nanoseconds deadline = now_ns() + kPatience;
  do {
    if (const auto reached = arrival()) {
      return reached;
    }
    pollfd refused{client.get(), 0, 0};
    if (::poll(&refused, 1, 0) > 0 && (refused.revents & POLLERR) != 0) {
      return std::nullopt;
    }
  } while (now_ns() < deadline);
  return std::nullopt;
}

std::optional<Nanoseconds> Prober::wait_for(
    std::size_t endpoint, std::chrono::milliseconds patience) {
  (void)::prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);  // sleep as short as asked
  const Nanoseconds deadline =
      now_ns() + std::chrono::duration_cast<std::chrono::nanoseconds>(patience).count();
  while (now_ns() < deadline) {
    if (probe() == endpoint) {
      return now_ns();
    }
    std::this_thread::sleep_for(kBetweenProbes);
  }
  return std::nullopt;
}

}  // namespace shunt::bench
