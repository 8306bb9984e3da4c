#include "test/apiserver/generator.h"

#include "test/apiserver/load_names.h"

namespace shunt::test_api {

Result<> Generator::start(LoadSpec spec) {
  const std::lock_guard thread_lock(thread_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (running_) {
      return fail(Errc::Exists, doing_ + " is running");
    }
    running_ = true;
    stop_ = false;
    objects_done_ = !spec.cluster;
    doing_ = "nothing yet";
    error_.clear();
    objects_ = events_ = writes_ = 0;
    latest_ = {};
  }
  if (thread_.joinable()) {
    thread_.join();  // of the last request: it has said that it is done
  }
  thread_ = std::thread([this, spec = std::move(spec)] { run(spec); });
  return {};
}

void Generator::wait_for_objects() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return objects_done_; });
}

void Generator::stop() {
  const std::lock_guard thread_lock(thread_mutex_);
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) {
    thread_.join();
  }
}

Json Generator::progress() const {
  const std::lock_guard lock(mutex_);
  Json out = Json::object();
  out["running"] = running_;
  out["doing"] = doing_;
  out["objects"] = objects_;
  out["events"] = events_;
  out["writes"] = writes_;
  out["latestMs"] = std::chrono::duration<double, std::milli>(latest_).count();
  out["error"] = error_;
  return out;
}

Result<ScenarioPtr> Generator::cluster(const ClusterSpec& spec, std::uint64_t seed) {
  constexpr std::size_t kAddresses = 1'000'000;  // of Services; of pods eight times as many
  if (services_ + spec.services > kAddresses ||
      pods_ + spec.services * spec.endpoints > 8 * kAddresses - 1000) {
    return fail(Errc::Invalid, "no addresses left");
  }
  ClusterObjects objects(spec, seed, services_, pods_);
  services_ += spec.services;
  pods_ += spec.services * spec.endpoints;
  return make_cluster(store_, std::move(objects), encode_);
}

void Generator::run(const LoadSpec& spec) {
  const auto next_pod = [this] { return ++pods_; };
  bool go_on = !spec.cluster || play(cluster(*spec.cluster, spec.seed));
  {
    const std::lock_guard lock(mutex_);
    objects_done_ = true;
    changed_.notify_all();
  }
  go_on = go_on && (!spec.churn || play(make_churn(store_, *spec.churn, spec.seed)));
  go_on =
      go_on && (!spec.rolling || play(make_rolling(store_, *spec.rolling, spec.seed, next_pod)));
  go_on = go_on && (!spec.drain || play(make_drain(store_, *spec.drain, spec.seed, next_pod)));
  const std::lock_guard lock(mutex_);
  running_ = false;
  doing_ = go_on ? "done" : error_.empty() ? "stopped" : "failed";
}

bool Generator::wait_until(Clock::time_point time) {
  std::unique_lock lock(mutex_);
  if (Clock::now() < time) {  // a wait for what is over costs a system call all the same
    changed_.wait_until(lock, time, [this] { return stop_; });
  }
  latest_ = std::max(latest_, std::chrono::nanoseconds(Clock::now() - time));
  return !stop_;
}

bool Generator::play(Result<ScenarioPtr> scenario) {
  if (!scenario) {
    const std::lock_guard lock(mutex_);
    error_ = scenario.error().what;
    return false;
  }
  const bool makes_objects = (*scenario)->name() == "objects";
  {
    const std::lock_guard lock(mutex_);
    doing_ = (*scenario)->name();
  }
  const Clock::time_point start = Clock::now();
  for (auto due = (*scenario)->due(); due; due = (*scenario)->due()) {
    // The objects come as fast as possible: nothing to be late for.
    if (!wait_until(makes_objects ? Clock::now() : start + *due)) {
      return false;
    }
    const std::size_t writes = (*scenario)->step();
    const std::lock_guard lock(mutex_);
    (makes_objects ? objects_ : writes_) += writes;
    events_ += makes_objects ? 0 : 1;
  }
  return true;
}

}  // namespace shunt::test_api
