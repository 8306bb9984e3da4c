#include "test/apiserver/stats.h"

#include <algorithm>

namespace shunt::test_api {
namespace {
constexpr std::size_t kRecent = 1000;
}  // namespace

void Stats::answered(RequestRecord record) {
  const std::lock_guard lock(mutex_);
  ++counts_[{record.verb, record.resource, record.code}];
  recent_.push_back(std::move(record));
  if (recent_.size() > kRecent) {
    recent_.pop_front();
  }
}

std::uint64_t Stats::watch_opened(OpenWatch watch) {
  const std::lock_guard lock(mutex_);
  watch.id = ++last_watch_;
  watches_.emplace(watch.id, std::move(watch));
  return last_watch_;
}

void Stats::watch_told(std::uint64_t id, std::uint64_t version, std::int64_t sent_ns) {
  const std::lock_guard lock(mutex_);
  OpenWatch& watch = watches_.at(id);
  watch.told = true;
  watch.version = version;
  watch.sent_ns = sent_ns;
  told_.notify_all();
}

Stats::Told Stats::wait_told(
    std::size_t table, std::uint64_t version, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  Told out;
  told_.wait_for(lock, patience, [&] {
    out = {};
    bool all = true;
    for (const auto& [id, watch] : watches_) {
      if (watch.table == table && watch.told) {
        ++out.watches;
        out.sent_ns = std::max(out.sent_ns, watch.sent_ns);
        all = all && watch.version >= version;
      }
    }
    return all;
  });
  return out;
}

void Stats::watch_closed(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  watches_.erase(id);
  told_.notify_all();
}

std::vector<OpenWatch> Stats::watches() const {
  const std::lock_guard lock(mutex_);
  std::vector<OpenWatch> all;
  for (const auto& [id, watch] : watches_) {
    all.push_back(watch);
  }
  return all;
}

Json Stats::summary() const {
  const std::lock_guard lock(mutex_);
  Json out = Json::object();
  out["requests"] = Json::array();
  for (const auto& [key, count] : counts_) {
    Json item = Json::object();
    item["verb"] = std::get<0>(key);
    item["resource"] = std::get<1>(key);
    item["code"] = std::get<2>(key);
    item["count"] = count;
    out["requests"].push_back(std::move(item));
  }
  std::map<std::string, int> open;
  for (const auto& [id, watch] : watches_) {
    ++open[watch.resource];
  }
  out["openWatches"] = Json::object();
  for (const auto& [resource, count] : open) {
    out["openWatches"][resource] = count;
  }
  return out;
}

Json Stats::requests() const {
  const std::lock_guard lock(mutex_);
  Json out = Json::array();
  for (const RequestRecord& record : recent_) {
    Json item = Json::object();
    item["verb"] = record.verb;
    item["resource"] = record.resource;
    item["target"] = record.target;
    item["user"] = record.user;
    item["userAgent"] = record.user_agent;
    item["accept"] = record.accept;
    item["code"] = record.code;
    out.push_back(std::move(item));
  }
  return out;
}

void Stats::reset() {
  const std::lock_guard lock(mutex_);
  counts_.clear();
  recent_.clear();
}

}  // namespace shunt::test_api
