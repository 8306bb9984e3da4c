// Transactions on the agent's table as the kernel announces them: what each changed, and when the
// announcement arrived. Only while little changes; see GenerationWatch for the rest.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "base/wake_fd.h"
#include "bench/suite/monotonic.h"
#include "netns/netns.h"

namespace shunt::bench {

struct Commit {
  Nanoseconds at = 0;  // when word of its last element came
  struct Elements {
    std::size_t added = 0;
    std::size_t deleted = 0;
  };
  std::map<std::string, Elements, std::less<>> sets;
  bool touches(std::string_view set) const { return sets.find(set) != sets.end(); }
};

class Commits {
 public:
  Commits(const lab::Netns& where, std::string table);
  Commits(const Commits&) = delete;
  Commits& operator=(const Commits&) = delete;
  ~Commits();

  void forget();  // what came so far
  // The next one that touches `set`; those before it are dropped. Nothing when none comes in time.
  std::optional<Commit> wait_for(std::string_view set, std::chrono::milliseconds patience);

 private:
  void listen();

  const std::string table_;
  UniqueFd fd_;
  WakeFd stop_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Commit> commits_;
  std::thread thread_;
};

}  // namespace shunt::bench
