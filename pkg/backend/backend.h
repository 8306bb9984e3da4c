// The contract that every kernel back end keeps. A back end owns one corner of the kernel for one
// address family, can tell what is its own without memory, changes nothing that a packet can see
// before the first apply(), and leaves others' objects alone.
//
// All calls come from the sync thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/backoff.h"
#include "base/result.h"
#include "desired/desired_state.h"

namespace shunt::backend {

// Which frontends may differ from what was last applied.
struct Delta {
  std::vector<desired::FrontendKey> frontends;  // may repeat; order is of no meaning
  bool everything = false;                      // all of them; `frontends` is ignored
  bool ranges = false;                          // the ranges of DesiredState changed
};

struct Refusal {
  desired::FrontendKey frontend;
  Error error;
};

// What was sent to the kernel.
struct Cost {
  std::uint64_t commits = 0;  // transactions that changed something
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;         // or what the back end counts instead
  std::chrono::nanoseconds waited{};  // for the kernel
  Cost& operator+=(const Cost& more);
};

// Of iptables, of one family: rules of ours, and those that the last apply() wrote.
struct RuleCounts {
  std::size_t filter = 0;
  std::size_t nat = 0;
  std::size_t filter_written = 0;
  std::size_t nat_written = 0;
};

struct ApplyReport {
  // Not of one frontend's making: no permission, no memory, a kernel that lacks a feature. What was
  // not applied is in `retry`, or `retry_everything` is set.
  Result<> outcome;
  std::vector<desired::FrontendKey> retry;
  bool retry_everything = false;
  std::vector<Refusal> set_aside;  // refused by the kernel, each alone; the rest went through
  std::vector<desired::FrontendKey> accepted;  // formerly set aside, now applied
  std::optional<Millis> again_in;              // apply() wants to be called again by then
  Cost cost;
  std::optional<RuleCounts> rules;  // by the iptables back end alone
};

inline Cost& Cost::operator+=(const Cost& more) {
  commits += more.commits;
  messages += more.messages;
  bytes += more.bytes;
  elements += more.elements;
  waited += more.waited;
  return *this;
}

// What somebody else did to what is ours.
struct Drift {
  // "table", "set", "chain", "rule", "element", "routing-rule"; "unknown": too much to tell
  std::string kind;
  std::string name;  // of the set or chain; of a routing rule its priority
  bool removed = false;
  std::size_t count = 0;
  std::string author;  // "nft (pid 4711)"; "" when not known
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Called any number of times before the first apply(), while the cluster's state is still being
  // told: reads what an earlier run left, and may write ahead what these frontends will need and no
  // packet can see yet. What fails here is for apply() to report.
  virtual Cost prepare(
      const desired::DesiredState& wanted, std::span<const desired::FrontendKey> frontends) {
    (void)wanted;
    (void)frontends;
    return {};
  }
  // Makes the kernel equal to `wanted`; `delta` says where to look. The first call looks
  // everywhere, and reads what an earlier run left if that was not done yet.
  virtual ApplyReport apply(const desired::DesiredState& wanted, const Delta& delta) = 0;
  // Removes every trace of ours. Idempotent.
  virtual Result<> cleanup() = 0;

  // Readable: others may have changed what is ours. -1: nothing tells (yet: ask again after each
  // apply()).
  virtual int drift_fd() const { return -1; }
  // What they did since the last call. Unless it is nothing, the next apply() undoes it, whatever
  // its delta.
  virtual std::vector<Drift> take_drift() { return {}; }
  // Whether the next apply() has something to do, whatever its delta, that nobody did to what is
  // ours: the host's addresses changed. Asked after take_drift().
  virtual bool has_news() const { return false; }

  // Any thread. Work off the path of apply() that belongs to what was applied is done.
  virtual bool idle() const { return true; }
};

}  // namespace shunt::backend
