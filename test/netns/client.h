// Clients of the echo servers: one question, or a load of them.
//
// A question is a new connection (TCP) or a datagram from a new socket (UDP); it is answered when
// the server's greeting has arrived.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "net/socket_address.h"
#include "netns/netns.h"

namespace shunt::lab {

struct Question {
  net::Protocol protocol = net::Protocol::Tcp;
  std::optional<net::SocketAddress> from;  // port 0: any
  net::SocketAddress to;
  std::chrono::milliseconds timeout{1000};
};

struct Answer {
  enum class Kind { Answered, Refused, TimedOut, Failed };
  Kind kind = Kind::Failed;
  std::string by;       // the server's name
  std::string at;       // the address it was reached under, after any rewriting
  std::string seen_as;  // the client's address as the server saw it
  int sys_errno = 0;    // when refused or failed
};

Answer ask(const Netns& where, const Question& question);

struct LoadSpec {
  Question question;
  std::size_t count = 0;             // 0: until the time is up
  double per_second = 0;             // 0: as fast as `parallel` allows
  std::size_t parallel = 16;         // questions open at once; with a rate, a limit never to be hit
  std::chrono::milliseconds time{};  // 0: until the count is reached
};

struct LoadReport {
  static constexpr std::size_t kMostFailures = 100'000;  // kept one by one
  std::map<std::string, std::size_t> answered;           // by server
  std::size_t refused = 0;
  std::size_t timed_out = 0;
  std::size_t failed = 0;
  struct Failure {  // since the start
    std::chrono::milliseconds begun{};
    std::chrono::milliseconds ended{};
    int sys_errno = 0;  // 0: nothing came in time
  };
  std::vector<Failure> failures;        // the first kMostFailures of them
  std::chrono::microseconds slowest{};  // of those answered

  std::size_t unanswered() const { return refused + timed_out + failed; }
  std::size_t total() const;
};

// Asks on the calling thread until the count is reached, the time is up or a stop is requested;
// questions still open then are waited for.
LoadReport run_load(const Netns& where, const LoadSpec& spec, const std::stop_token& stop = {});

// One line a server with a bar, then one line of what was not answered.
std::string to_text(const LoadReport& report);

}  // namespace shunt::lab
