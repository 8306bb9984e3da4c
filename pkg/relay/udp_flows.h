// The UDP conversations that the relay keeps: one for each client address of a NodePort, with a
// socket of its own towards its endpoint.
#pragma once

#include <list>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "desired/frontend.h"
#include "relay/poller.h"
#include "relay/sockets.h"

namespace shunt::relay {

class UdpFlows {
 public:
  struct Limits {
    std::size_t flows = 4096;  // the one that was quiet for longest goes for a new one
    Millis idle{60'000};
  };
  UdpFlows(Poller& poller, Limits limits) : poller_(poller), limits_(limits) {}
  UdpFlows(const UdpFlows&) = delete;
  UdpFlows& operator=(const UdpFlows&) = delete;
  ~UdpFlows();

  using Key = std::pair<desired::FrontendKey, net::SocketAddress>;  // NodePort, client

  // False when the client has no conversation yet.
  bool pass_on(const Key& key, std::span<const char> datagram, Clock::time_point now);
  // `listener` is the NodePort's socket: answers come from there.
  Result<> begin(
      const Key& key,
      const net::SocketAddress& endpoint,
      int listener,
      std::span<const char> datagram,
      Clock::time_point now);

  // Ends those of a NodePort whose endpoint `stays` no longer says to be one.
  template <typename Stays>
  void keep_only(const desired::FrontendKey& node_port, const Stays& stays) {
    for (auto it = index_.lower_bound({node_port, {}});
         it != index_.end() && it->first.first == node_port;) {
      const auto flow = (it++)->second;
      if (!stays(flow->endpoint)) {
        end(flow);
      }
    }
  }
  void expire(Clock::time_point now);
  std::optional<Clock::time_point> due() const;  // of expire()
  std::size_t size() const { return index_.size(); }

 private:
  struct Flow : Poller::Client {
    void ready(int fd, std::uint32_t events) override;

    Key key;
    net::SocketAddress endpoint;
    int listener = -1;
    UniqueFd upstream;
    Clock::time_point used{};
    UdpFlows* owner = nullptr;
  };
  using FlowList = std::list<Flow>;

  void use(FlowList::iterator flow, Clock::time_point now);
  void end(FlowList::iterator flow);

  Poller& poller_;
  Limits limits_;
  FlowList flows_;  // the one that was quiet for longest is the first
  std::map<Key, FlowList::iterator> index_;
};

}  // namespace shunt::relay
