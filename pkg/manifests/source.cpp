#include "manifests/source.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <utility>

#include "base/directory_watch.h"
#include "base/log.h"
#include "base/stoppable_thread.h"
#include "manifests/directory.h"

namespace shunt::manifests {
namespace {

using log::kv;

// While there is no directory to watch.
constexpr Millis kRetry{1000};

template <typename T>
void deliver_list(
    const std::vector<std::shared_ptr<const T>>& objects, Mailbox<std::shared_ptr<const T>>& box) {
  box.begin_list();
  for (const auto& object : objects) {
    box.upsert(kube::to_string(object->meta.key), object);
  }
  box.end_list();
}

}  // namespace

class Source::Impl {
 public:
  Impl(SourceOptions options, Outboxes outboxes)
      : options_(std::move(options)), outboxes_(outboxes), directory_(options_.directory) {}
  ~Impl() { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void start() {
    thread_.start("manifests", [this] { run(); });
  }
  void stop() { thread_.stop(); }
  SourceStatus status() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  enum class Woken : std::uint8_t { Change, Timeout, Stop };

  void run() {
    for (;;) {
      // Opened anew before each look: the directory may be another one by now, and what changes
      // while we look is seen by the next wait.
      auto watch = DirectoryWatch::open(options_.directory);
      const bool soon = look();
      const Millis patience = !watch ? kRetry : soon ? options_.debounce * 2 : options_.look_every;
      const Woken woken = wait(watch ? watch->fd() : -1, patience);
      if (woken == Woken::Stop || (woken == Woken::Change && !settle(*watch))) {
        return;
      }
    }
  }

  // Waits until the directory is quiet; false: stop was asked.
  bool settle(DirectoryWatch& watch) {
    const auto until = Clock::now() + 20 * options_.debounce;
    do {
      (void)watch.take_changes();
      const Woken woken = wait(watch.fd(), options_.debounce);
      if (woken != Woken::Change) {
        return woken == Woken::Timeout;
      }
    } while (Clock::now() < until);
    return true;
  }

  Woken wait(int fd, Millis patience) const {
    std::array<pollfd, 2> fds{
        {{thread_.stop_fd(), POLLIN, 0}, {fd, POLLIN, 0}}};  // -1 is passed over
    const auto until = Clock::now() + patience;
    for (;;) {
      const auto left = std::chrono::ceil<Millis>(until - Clock::now());
      const int ready =
          ::poll(fds.data(), fds.size(), static_cast<int>(std::max<Millis::rep>(left.count(), 0)));
      if (ready == 0) {
        return Woken::Timeout;
      }
      if (ready > 0) {
        return fds[0].revents != 0 ? Woken::Stop : Woken::Change;
      }
    }
  }

  // Reads and delivers; true when it should be done again soon.
  bool look() {
    const auto look = directory_.look();
    if (!look) {
      if (std::exchange(said_, look.error().what) != look.error().what) {
        log::warn(
            "the directory of manifests cannot be read, what is known stays in force",
            {kv("error", look.error().what)});
      }
      return false;
    }
    said_.clear();
    for (const std::string& line : look->news) {
      log::warn("manifest", {kv("directory", options_.directory), kv("problem", line)});
    }
    if (look->changed || !delivered_) {
      deliver();
    }
    const std::lock_guard lock(mutex_);
    status_.files = directory_.files();
    status_.problems += look->news.size();
    return look->unsettled;
  }

  void deliver() {
    const Objects& objects = directory_.objects();
    auto nodes = objects.nodes;
    std::erase_if(
        nodes, [&](const auto& node) { return node->meta.key.name != options_.node_name; });
    // Slices before Services, so that a reader who wakes in between finds no Service without its
    // endpoints.
    deliver_list(nodes, outboxes_.nodes);
    deliver_list(objects.service_cidrs, outboxes_.service_cidrs);
    deliver_list(objects.slices, outboxes_.slices);
    deliver_list(objects.services, outboxes_.services);
    delivered_ = true;
    log::info(
        "manifests read",
        {kv("directory", options_.directory),
         kv("files", directory_.files()),
         kv("services", objects.services.size()),
         kv("endpointslices", objects.slices.size()),
         kv("nodes", nodes.size()),
         kv("servicecidrs", objects.service_cidrs.size())});
    const std::lock_guard lock(mutex_);
    ++status_.lists;
    status_.objects = objects.size();
  }

  const SourceOptions options_;
  Outboxes outboxes_;
  Directory directory_;  // this and the next two: the thread's
  bool delivered_ = false;
  std::string said_;        // why the directory cannot be listed
  StoppableThread thread_;  // before what waits on its descriptor
  mutable std::mutex mutex_;
  SourceStatus status_;
};

Source::Source(SourceOptions options, Outboxes outboxes)
    : impl_(std::make_unique<Impl>(std::move(options), outboxes)) {}
Source::~Source() = default;
void Source::start() { impl_->start(); }
void Source::stop() { impl_->stop(); }
SourceStatus Source::status() const { return impl_->status(); }

}  // namespace shunt::manifests
