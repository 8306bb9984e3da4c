// The contract that every kernel back end keeps. A back end owns one corner of the kernel for one
// address family, can tell what is its own without memory, changes nothing before the first
// apply(), and leaves others' objects alone.
//
// All calls come from the sync thread.
#pragma once

#include <cstdint>
#include <optional>
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

struct ApplyReport {
  // Not of one frontend's making: no permission, no memory, a kernel that lacks a feature. What was
  // not applied is in `retry`, or `retry_everything` is set.
  Result<> outcome;
  std::vector<desired::FrontendKey> retry;
  bool retry_everything = false;
  std::vector<Refusal> set_aside;  // refused by the kernel, each alone; the rest went through
  std::vector<desired::FrontendKey> accepted;  // formerly set aside, now applied
  std::optional<Millis> again_in;              // apply() wants to be called again by then
  std::uint64_t commits = 0;                   // transactions that changed something
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Reads what an earlier run left, so that the first apply is a repair. Called once before the
  // first apply.
  virtual Result<> adopt() = 0;
  // Makes the kernel equal to `wanted`; `delta` says where to look. The first call after adopt()
  // looks everywhere.
  virtual ApplyReport apply(const desired::DesiredState& wanted, const Delta& delta) = 0;
  // Removes every trace of ours. Idempotent.
  virtual Result<> cleanup() = 0;

  // Any thread. Work off the path of apply() that belongs to what was applied is done.
  virtual bool idle() const { return true; }
};

}  // namespace shunt::backend
