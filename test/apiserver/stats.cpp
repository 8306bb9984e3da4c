#include "test/apiserver/stats.h"

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

void Stats::watch_opened(const std::string& resource) {
  const std::lock_guard lock(mutex_);
  ++open_watches_[resource];
}

void Stats::watch_closed(const std::string& resource) {
  const std::lock_guard lock(mutex_);
  --open_watches_[resource];
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
  out["openWatches"] = Json::object();
  for (const auto& [resource, count] : open_watches_) {
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
