// Forgets clients whose endpoint stopped being usable (design.md §3): reads an affinity map and
// deletes what points elsewhere than allowed. A thread of its own, since the kernel takes seconds
// to list a map of hundreds of thousands of clients, and no Service may wait for that.
//
// A packet that was under way while an element was deleted may bring it back. So a map from which
// something was deleted is read again a moment later, until nothing is found.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backend/nft/kernel_mirror.h"
#include "backend/nft/transport.h"
#include "base/backoff.h"

namespace shunt::backend::nft {

class Purger {
 public:
  virtual ~Purger() = default;
  // Called when the kernel has taken the change that the purges follow. Of two for one map the
  // later counts.
  virtual void purge(std::vector<Purge> purges) = 0;
  virtual bool idle() const = 0;  // any thread
};

class AffinityPurger : public Purger {
 public:
  static constexpr Millis kSecondLook{50};

  AffinityPurger(net::Family family, std::unique_ptr<Transport> transport);
  ~AffinityPurger() override;
  AffinityPurger(const AffinityPurger&) = delete;
  AffinityPurger& operator=(const AffinityPurger&) = delete;

  void purge(std::vector<Purge> purges) override;
  bool idle() const override;

 private:
  struct Job {
    Purge purge;
    Clock::time_point due{};
    int failures = 0;
  };

  void run();
  Result<std::size_t> look(const Purge& purge);
  void finish(Job job, const Result<std::size_t>& deleted);

  const net::Family family_;
  const std::unique_ptr<Transport> transport_;  // the thread's
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, Job> jobs_;  // by map
  bool busy_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace shunt::backend::nft
