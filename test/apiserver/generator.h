// Makes load: a cluster, then scenarios, in a thread of its own. One request at a time.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "test/apiserver/json.h"
#include "test/apiserver/load_spec.h"
#include "test/apiserver/scenario.h"

namespace shunt::test_api {

class Generator {
 public:
  // `encode`: whether protobuf will be wanted.
  Generator(Store& store, bool encode) : store_(store), encode_(encode) {}
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;
  ~Generator() { stop(); }

  Result<> start(LoadSpec spec);  // Exists: something runs already
  void wait_for_objects();        // until the cluster of the request is there
  void stop();                    // ends what runs, between two steps
  Json progress() const;

 private:
  using Clock = std::chrono::steady_clock;
  void run(const LoadSpec& spec);
  bool play(Result<ScenarioPtr> scenario);  // false: stopped, or it could not be
  bool wait_until(Clock::time_point time);  // false: stopped
  Result<ScenarioPtr> cluster(const ClusterSpec& spec, std::uint64_t seed);

  Store& store_;
  const bool encode_;
  std::mutex thread_mutex_;  // start and stop, one at a time
  std::thread thread_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool running_ = false;
  bool stop_ = false;
  bool objects_done_ = true;
  std::string doing_;
  std::string error_;
  std::uint64_t objects_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t writes_ = 0;
  std::chrono::nanoseconds latest_{0};  // how late a step was, at the worst

  std::size_t services_ = 0;  // used numbers; the thread's
  std::size_t pods_ = 0;
};

}  // namespace shunt::test_api
