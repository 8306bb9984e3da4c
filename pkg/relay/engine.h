// The sockets of the relay and what goes through them. One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/wake_fd.h"
#include "relay/endpoint_choice.h"
#include "relay/poller.h"
#include "relay/tcp_pair.h"
#include "relay/udp_flows.h"

namespace shunt::relay {

struct Limits {
  std::size_t connections = 1024;  // further ones wait in the kernel until one ends
  UdpFlows::Limits udp;
  Millis bind_retry{30'000};  // a port that somebody else holds is tried again
};

// The limits for a process that may have so many descriptors: the relay never takes those that the
// rest of the daemon needs to reach the API server and the kernel.
Limits limits_within(std::size_t descriptors);

// What a NodePort is to the relay.
struct NodePort {
  std::string service;  // for people
  desired::EndpointListPtr endpoints;
  std::optional<std::chrono::seconds> affinity;
};

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> make(Limits limits, Random random, WakeFd& wake);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // Nothing: there is no such NodePort (any more). Without endpoints nobody listens, so that
  // clients are refused. Established TCP connections go on whatever happens.
  void set(const desired::FrontendKey& key, std::optional<NodePort> node_port);

  // Waits for something to happen, the wake descriptor included, and does it.
  void step();

 private:
  struct Port : Poller::Client {
    void ready(int fd, std::uint32_t events) override;

    Engine* engine = nullptr;
    desired::FrontendKey key;
    std::string service;
    EndpointChoice choice;
    UniqueFd socket;
  };
  struct OnReady : Poller::Client {
    void ready(int, std::uint32_t) override { act(); }
    std::function<void()> act;
  };

  Engine(Limits limits, Random random, WakeFd& wake, Poller poller, Poller listeners);

  void open(Port& port);
  void close(Port& port);
  void retry_unbound(Clock::time_point now);
  void accept(Port& port);
  void relay(Port& port, UniqueFd client);
  void take_datagrams(Port& port);
  void exhausted(const Error& error);
  void pause(Millis time);
  void resume(Clock::time_point now);
  void sweep();
  std::optional<Clock::time_point> due() const;

  Limits limits_;
  Random random_;
  WakeFd& wake_;
  Poller poller_;
  Poller listeners_;  // the listening TCP sockets: one descriptor to watch, or not when we are full
  OnReady on_wake_;
  OnReady on_connections_;
  std::vector<const TcpPair*> finished_;
  std::unordered_map<const TcpPair*, std::unique_ptr<TcpPair>> pairs_;
  UdpFlows flows_;
  std::map<desired::FrontendKey, Port> ports_;
  std::set<desired::FrontendKey> unbound_;
  std::optional<Clock::time_point> retry_at_;
  std::optional<Clock::time_point> paused_until_;
  std::optional<Clock::time_point> complained_;
};

}  // namespace shunt::relay
