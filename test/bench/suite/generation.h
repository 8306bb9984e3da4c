// Watches the number of nf_tables' generation, which every transaction raises: when was the last
// one? Asking costs the kernel nothing, whereas a subscriber to notifications would make it write
// one for each of a million elements.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/unique_fd.h"
#include "bench/suite/monotonic.h"
#include "netns/netns.h"

namespace shunt::bench {

std::uint32_t generation_of(const lab::Netns& where);

class GenerationWatch {
 public:
  explicit GenerationWatch(const lab::Netns& where);
  GenerationWatch(const GenerationWatch&) = delete;
  GenerationWatch& operator=(const GenerationWatch&) = delete;
  ~GenerationWatch();

  // Up to half a millisecond after the fact; 0 when nothing was written since the watch began.
  Nanoseconds last_change() const { return last_change_; }
  std::uint64_t changes() const { return changes_; }  // seen; several may count as one

 private:
  std::atomic<Nanoseconds> last_change_ = 0;
  std::atomic<std::uint64_t> changes_ = 0;
  std::atomic<bool> stop_ = false;
  UniqueFd fd_;
  std::thread thread_;
};

}  // namespace shunt::bench
