#include "events/aggregator.h"

#include <algorithm>
#include <utility>

namespace shunt::events {

std::optional<Event> Aggregator::take(const kube::Notice& notice, Times now) {
  const Object object{notice.kind, notice.object};
  Same same{object, notice.uid, notice.reason, notice.action, notice.warning};
  if (const auto found = known_.find(same); found != known_.end()) {
    Known& known = found->second;
    known.seen = now.steady;
    if (known.event.series) {
      ++known.event.series->count;
      known.event.series->last_observed = now.wall;
      return std::nullopt;
    }
    known.event.series = Series{2, now.wall};
    if (!allowed(object, now.steady)) {
      return std::nullopt;  // upkeep() tells it
    }
    known.told = now.steady;
    known.told_count = 2;
    return known.event;
  }
  if (!allowed(object, now.steady)) {
    return std::nullopt;
  }
  if (known_.size() >= kMaxEvents) {
    known_.erase(
        std::ranges::min_element(known_, {}, [](const auto& entry) { return entry.second.seen; }));
  }
  Event event{event_name(notice, now.wall, random_), notice, now.wall, std::nullopt};
  event.notice.note = clean_text(notice.note, kMaxNote);  // as much of it as is held
  known_.emplace(std::move(same), Known{event, now.steady, now.steady});
  return event;
}

bool Aggregator::allowed(const Object& object, Clock::time_point now) {
  auto found = bounds_.find(object);
  if (found == bounds_.end()) {
    if (bounds_.size() >= kMaxEvents) {
      // Most are full again; if none is, one of them starts afresh.
      std::erase_if(bounds_, [&](const auto& entry) { return entry.second.full(now); });
      if (bounds_.size() >= kMaxEvents) {
        bounds_.erase(bounds_.begin());
      }
    }
    found = bounds_.emplace(object, TokenBucket(kBound, now)).first;
  }
  const bool good = found->second.take(now);
  bounded_ += good ? 0 : 1;
  return good;
}

std::vector<Event> Aggregator::upkeep(Times now) {
  std::vector<Event> due;
  for (auto it = known_.begin(); it != known_.end();) {
    Known& known = it->second;
    const bool over = now.steady - known.seen >= kFinishAfter;
    const bool news = known.event.series && known.event.series->count != known.told_count;
    if (news && (over || now.steady - known.told >= kRefreshAfter)) {
      due.push_back(known.event);
      known.told = now.steady;
      known.told_count = known.event.series->count;
    }
    it = over ? known_.erase(it) : std::next(it);
  }
  std::erase_if(bounds_, [&](const auto& entry) { return entry.second.full(now.steady); });
  return due;
}

}  // namespace shunt::events
