#include "backend/nft/affinity_purger.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "backend/nft/keys.h"
#include "backend/nft/program_sets.h"
#include "base/log.h"

namespace shunt::backend::nft {
namespace {

constexpr std::size_t kDeletionsAtOnce = 1'000;
constexpr int kTries = 5;

Set set_of_map(const Purge& purge) {
  Set set;
  set.name = purge.map;
  set.shape = KeyShape::Address;
  set.holds = purge.port ? Set::Holds::Addresses : Set::Holds::Endpoints;
  set.size = kDynamicSetSize;
  return set;
}

std::optional<net::SocketAddress> endpoint_of(
    net::Family family, const Purge& purge, const Element& element) {
  if (!purge.port) {
    return decode_data(family, element.data);
  }
  const auto ip = decode_address_data(family, element.data);
  return ip ? std::optional(net::SocketAddress{*ip, *purge.port}) : std::nullopt;
}

bool is_allowed(const Purge& purge, const std::optional<net::SocketAddress>& endpoint) {
  return endpoint && purge.allowed &&
         std::binary_search(purge.allowed->begin(), purge.allowed->end(), *endpoint);
}

}  // namespace

AffinityPurger::AffinityPurger(net::Family family, std::unique_ptr<Transport> transport)
    : family_(family), transport_(std::move(transport)), thread_([this] { run(); }) {}

AffinityPurger::~AffinityPurger() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void AffinityPurger::purge(std::vector<Purge> purges) {
  if (purges.empty()) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    for (Purge& purge : purges) {
      const std::string map = purge.map;
      jobs_.insert_or_assign(map, Job{std::move(purge), Clock::now(), 0});
    }
  }
  wake_.notify_all();
}

bool AffinityPurger::idle() const {
  const std::lock_guard lock(mutex_);
  return jobs_.empty() && !busy_;
}

// Answers how many elements were deleted.
Result<std::size_t> AffinityPurger::look(const Purge& purge) {
  const Set set = set_of_map(purge);
  std::vector<Element> stale;
  // A list that the kernel calls inconsistent is as good as any: there is another look.
  Result<> read = transport_->read_elements(family_, set, [&](Element&& element) {
    if (!is_allowed(purge, endpoint_of(family_, purge, element))) {
      element.data = {};
      stale.push_back(std::move(element));
    }
  });
  if (!read && read.error().code != Errc::Again) {
    return tl::unexpected(read.error());
  }
  for (std::size_t begin = 0; begin < stale.size(); begin += kDeletionsAtOnce) {
    const std::size_t size = std::min(kDeletionsAtOnce, stale.size() - begin);
    const auto done =
        transport_->delete_elements(family_, set, std::span(stale).subspan(begin, size));
    if (!done) {
      return tl::unexpected(done.error());
    }
  }
  if (!read) {
    return tl::unexpected(read.error());
  }
  return stale.size();
}

void AffinityPurger::finish(Job job, const Result<std::size_t>& deleted) {
  if (deleted && *deleted == 0) {
    return;
  }
  job.due = Clock::now() + kSecondLook;
  if (!deleted) {
    if (deleted.error().code == Errc::NotFound || ++job.failures >= kTries) {
      // The map went with its Service; or its elements time out, or are purged with the next
      // change.
      if (deleted.error().code != Errc::NotFound) {
        log::warn(
            "affinity to endpoints that went could not be purged",
            {log::kv("map", job.purge.map), log::kv("error", deleted.error().what)});
      }
      return;
    }
    if (deleted.error().code == Errc::Again || deleted.error().code == Errc::Stale) {
      job.due = Clock::now();  // an element timed out while it was being deleted: look again
    }
  }
  const std::lock_guard lock(mutex_);
  const std::string map = job.purge.map;
  jobs_.try_emplace(map, std::move(job));  // unless there is a newer one
}

void AffinityPurger::run() {
  (void)::pthread_setname_np(::pthread_self(), "purge");  // a name is a nicety
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto next =
        std::min_element(jobs_.begin(), jobs_.end(), [](const auto& a, const auto& b) {
          return a.second.due < b.second.due;
        });
    if (next == jobs_.end()) {
      wake_.wait(lock);
      continue;
    }
    if (next->second.due > Clock::now()) {
      wake_.wait_until(lock, next->second.due);
      continue;
    }
    auto node = jobs_.extract(next);
    busy_ = true;
    lock.unlock();
    const Result<std::size_t> deleted = look(node.mapped().purge);
    finish(std::move(node.mapped()), deleted);
    lock.lock();
    busy_ = false;
  }
}

}  // namespace shunt::backend::nft
