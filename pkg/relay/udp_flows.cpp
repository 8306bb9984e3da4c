#include "relay/udp_flows.h"

#include <sys/epoll.h>

#include <array>

namespace shunt::relay {
namespace {

constexpr std::size_t kLargestDatagram = 65'536;
constexpr int kAnswersAtOnce = 32;  // then it is another socket's turn

}  // namespace

UdpFlows::~UdpFlows() {
  while (!flows_.empty()) {
    end(flows_.begin());
  }
}

bool UdpFlows::pass_on(const Key& key, std::span<const char> datagram, Clock::time_point now) {
  const auto found = index_.find(key);
  if (found == index_.end()) {
    return false;
  }
  use(found->second, now);
  // An error is that of an earlier datagram, or a full buffer: this one is lost, as on a network.
  (void)::send(found->second->upstream.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL);
  return true;
}

Result<> UdpFlows::begin(
    const Key& key,
    const net::SocketAddress& endpoint,
    int listener,
    std::span<const char> datagram,
    Clock::time_point now) {
  if (!flows_.empty() && flows_.size() >= limits_.flows) {
    end(flows_.begin());
  }
  auto upstream = connect_to(endpoint, net::Protocol::Udp);
  if (!upstream) {
    return tl::unexpected(upstream.error());
  }
  Flow& flow = flows_.emplace_back();
  flow.key = key;
  flow.endpoint = endpoint;
  flow.listener = listener;
  flow.upstream = std::move(*upstream);
  flow.used = now;
  flow.owner = this;
  index_.emplace(key, std::prev(flows_.end()));
  if (!poller_.watch(flow.upstream.get(), flow, EPOLLIN)) {
    end(std::prev(flows_.end()));
    return fail(Errc::Again, "epoll");
  }
  (void)pass_on(key, datagram, now);  // it has a conversation now
  return {};
}

void UdpFlows::expire(Clock::time_point now) {
  while (!flows_.empty() && flows_.front().used + limits_.idle <= now) {
    end(flows_.begin());
  }
}

std::optional<Clock::time_point> UdpFlows::due() const {
  return flows_.empty() ? std::nullopt : std::optional(flows_.front().used + limits_.idle);
}

void UdpFlows::use(FlowList::iterator flow, Clock::time_point now) {
  flow->used = now;
  flows_.splice(flows_.end(), flows_, flow);
}

void UdpFlows::end(FlowList::iterator flow) {
  poller_.forget(flow->upstream.get());
  index_.erase(flow->key);
  flows_.erase(flow);
}

// What the endpoint sends.
void UdpFlows::Flow::ready(int fd, std::uint32_t) {
  static thread_local std::array<char, kLargestDatagram> buffer;
  owner->use(owner->index_.at(key), Clock::now());
  for (int i = 0; i < kAnswersAtOnce; ++i) {
    // Errors (the endpoint's port is closed) clear themselves by being read.
    const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (got < 0) {
      return;
    }
    send_to(listener, std::span(buffer).first(static_cast<std::size_t>(got)), key.second);
  }
}

}  // namespace shunt::relay
