#include "events/recorder.h"

#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "apiserver/deadline.h"
#include "apiserver/http_stream.h"
#include "apiserver/stop_waiter.h"
#include "base/stoppable_thread.h"
#include "base/wake_fd.h"
#include "events/aggregator.h"

namespace shunt::events {
namespace {

constexpr Millis kUpkeepEvery{std::chrono::minutes(1)};
constexpr Millis kStallTimeout{std::chrono::seconds(30)};

Times now() { return {std::chrono::system_clock::now(), Clock::now()}; }

}  // namespace

class Recorder::Impl {
 public:
  Impl(apiserver::Connector& connector, SenderOptions options)
      : waiter_(thread_.stop_fd()),
        stream_(
            connector,
            {.stall_timeout = kStallTimeout, .limits = {}, .stop_fd = thread_.stop_fd()}),
        sender_(std::move(options), stream_, waiter_, seeded_random()),
        aggregator_(seeded_random()) {}
  ~Impl() { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void start() {
    thread_.start("events", [this] { run(); });
  }
  void stop() { thread_.stop(); }

  void record(const kube::Notice& notice) {
    bool ring = false;
    {
      const std::lock_guard lock(mutex_);
      ++status_.recorded;
      auto event = aggregator_.take(notice, now());
      ring = event && push(std::move(*event));
    }
    if (ring) {
      work_.ring();
    }
  }

  RecorderStatus status() const {
    const std::lock_guard lock(mutex_);
    RecorderStatus out = status_;
    out.bounded = aggregator_.bounded();
    return out;
  }

 private:
  // Under the lock.
  bool push(Event event) {
    if (queue_.size() >= kMaxQueue) {
      ++status_.dropped;
      return false;
    }
    queue_.push_back(std::move(event));
    return true;
  }

  void run() {
    auto upkeep_at = Clock::now() + kUpkeepEvery;
    while (!waiter_.stopping()) {
      if (Clock::now() >= upkeep_at) {
        upkeep_at = Clock::now() + kUpkeepEvery;
        keep_up();
      }
      if (auto event = pop()) {
        count(sender_.send(*event));
      } else {
        // How it ends does not matter: everything is looked at again.
        (void)apiserver::wait_until_ready(
            work_.fd(), apiserver::Readiness::Read, {upkeep_at, thread_.stop_fd()});
        work_.clear();
      }
    }
  }

  void keep_up() {
    const std::lock_guard lock(mutex_);
    for (Event& event : aggregator_.upkeep(now())) {
      (void)push(std::move(event));  // a dropped one is counted
    }
  }

  std::optional<Event> pop() {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) {
      return std::nullopt;
    }
    Event event = std::move(queue_.front());
    queue_.pop_front();
    return event;
  }

  void count(Outcome outcome) {
    const std::lock_guard lock(mutex_);
    status_.sent += outcome == Outcome::Sent ? 1 : 0;
    status_.refused += outcome == Outcome::Refused ? 1 : 0;
    status_.given_up += outcome == Outcome::GivenUp ? 1 : 0;
  }

  StoppableThread thread_;  // before what waits on its descriptor
  WakeFd work_;
  apiserver::StopWaiter waiter_;
  apiserver::HttpStream stream_;
  Sender sender_;  // the thread's

  mutable std::mutex mutex_;  // held for moments, never over I/O
  Aggregator aggregator_;
  std::deque<Event> queue_;
  RecorderStatus status_;
};

Recorder::Recorder(apiserver::Connector& connector, SenderOptions options)
    : impl_(std::make_unique<Impl>(connector, std::move(options))) {}
Recorder::Recorder(apiserver::Connector& connector, Reporter reporter)
    : Recorder(connector, SenderOptions{.reporter = std::move(reporter)}) {}
Recorder::~Recorder() = default;
void Recorder::start() { impl_->start(); }
void Recorder::stop() { impl_->stop(); }
void Recorder::record(const kube::Notice& notice) { impl_->record(notice); }
kube::NoticeSink Recorder::sink() {
  return [this](const kube::Notice& notice) { record(notice); };
}
RecorderStatus Recorder::status() const { return impl_->status(); }

}  // namespace shunt::events
