// What the agent waits for before its first write, and which later change of the Node kube-proxy
// exits for (spec/config.md §5); we follow it. Pure, given a clock.
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

// Whether the ranges that tell local pods are others than `pod_cidrs`. Without meaning unless they
// come from the Node; a Node that is gone, changes nothing.
bool pod_cidrs_changed(
    bool needs_pod_cidrs, const std::vector<std::string>& pod_cidrs, const kube::Node* now);

// The label topology.kubernetes.io/zone; "" without it.
std::string zone_of(const kube::Node* node);

}  // namespace shunt::node
