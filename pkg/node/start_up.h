// What the agent waits for before its first write, and which changes of the Node it cannot follow
// (spec/config.md §5). Pure, given a clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/backoff.h"
#include "kube/node.h"

namespace shunt::node {

// Waits for an address of the Node for a while, then goes on without. With NodeCIDR it then waits
// for the Node's podCIDRs, much longer, and gives up the whole start: without them every pod would
// be taken for an outsider.
class StartUpWait {
 public:
  struct Patience {
    Millis addresses{10'000};
    Millis pod_cidrs{300'000};
  };
  enum class Verdict : std::uint8_t { Wait, Start, NodeMissing, PodRangesMissing };

  StartUpWait(bool needs_pod_cidrs, Patience patience)
      : needs_pod_cidrs_(needs_pod_cidrs), patience_(patience) {}

  // `node` is null while unknown. The first look starts the clock; a verdict other than Wait is
  // final.
  Verdict look(const kube::Node* node, Clock::time_point now);

  // When patience ends; nothing while nobody waits.
  std::optional<Clock::time_point> due() const { return until_; }
  bool waits_for_pod_cidrs() const { return waits_for_pod_cidrs_; }

 private:
  Verdict next_verdict(const kube::Node* node, Clock::time_point now);

  bool needs_pod_cidrs_;
  Patience patience_;
  bool waits_for_pod_cidrs_ = false;
  Verdict verdict_ = Verdict::Wait;
  std::optional<Clock::time_point> until_;
};

// `pod_cidrs` are those of the start. A Node that is gone asks for nothing.
bool needs_restart(
    bool needs_pod_cidrs, const std::vector<std::string>& pod_cidrs, const kube::Node* now);

// The label topology.kubernetes.io/zone; "" without it.
std::string zone_of(const kube::Node* node);

}  // namespace shunt::node
