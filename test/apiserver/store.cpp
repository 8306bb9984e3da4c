#include "test/apiserver/store.h"

#include <algorithm>

namespace shunt::test_api {
namespace {

std::string key_of(const Object& object) { return object_key(object.ns, object.name); }

Store::Listing listing_of(const std::map<std::string, ObjectPtr>& objects, std::uint64_t version) {
  Store::Listing out{version, {}};
  out.objects.reserve(objects.size());
  for (const auto& [key, object] : objects) {
    out.objects.push_back(object);
  }
  return out;
}

}  // namespace

std::uint64_t Store::version() const {
  const std::lock_guard lock(mutex_);
  return version_;
}

ObjectPtr Store::find(std::size_t table, const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto& objects = tables_.at(table).objects;
  const auto found = objects.find(key);
  return found == objects.end() ? nullptr : found->second;
}

Store::Listing Store::list(std::size_t table) const {
  const std::lock_guard lock(mutex_);
  return listing_of(tables_.at(table).objects, version_);
}

Answer<Store::Listing> Store::list_at(std::size_t index, std::uint64_t version) const {
  const std::lock_guard lock(mutex_);
  const Table& table = tables_.at(index);
  if (version > version_) {
    return refuse(version_too_large(version, version_));
  }
  if (table.log.empty() || table.log.back().version <= version) {
    if (version < table.oldest) {
      return refuse(expired_watch(version, table.oldest));
    }
    return listing_of(table.objects, version);
  }
  if (version < table.oldest) {
    return refuse(expired_watch(version, table.oldest));
  }
  auto objects = table.objects;
  for (auto it = table.log.rbegin(); it != table.log.rend() && it->version > version; ++it) {
    if (it->before) {
      objects[key_of(*it->before)] = it->before;
    } else {
      objects.erase(key_of(*it->after));
    }
  }
  return listing_of(objects, version);
}

Answer<Change> Store::change(std::size_t index, const std::string& key, const Edit& edit) {
  const std::lock_guard lock(mutex_);
  Table& table = tables_.at(index);
  const auto found = table.objects.find(key);
  const ObjectPtr current = found == table.objects.end() ? nullptr : found->second;
  auto wanted = edit(current, version_ + 1);
  if (!wanted) {
    return refuse(std::move(wanted.error()));
  }
  Change change{version_ + 1, current, *wanted};
  if (current == *wanted) {
    change.version = version_;
    return change;
  }
  on_change_(index, key, change);
  commit(table, key, change);
  return change;
}

void Store::commit(Table& table, const std::string& key, Change change) {
  version_ = change.version;
  if (change.after) {
    table.objects[key] = change.after;
  } else {
    table.objects.erase(key);
  }
  table.log.push_back(std::move(change));
  if (table.log.size() > log_size_) {
    table.lost = table.log.front().version;
    table.log.pop_front();
    // As the real watch cache counts: one before the oldest event it still has.
    table.oldest = table.log.empty() ? version_ : table.log.front().version - 1;
  }
  for (WakeFd* bell : table.bells) {
    bell->ring();
  }
}

Store::Batch Store::changes_after(std::size_t index, std::uint64_t version) const {
  const std::lock_guard lock(mutex_);
  const Table& table = tables_.at(index);
  const auto first = std::ranges::upper_bound(table.log, version, {}, &Change::version);
  return {version_, table.oldest, table.lost, {first, table.log.end()}};
}

void Store::forget_log() {
  const std::lock_guard lock(mutex_);
  for (Table& table : tables_) {
    table.lost = table.log.empty() ? table.lost : table.log.back().version;
    table.log.clear();
    table.oldest = version_;
  }
}

void Store::advance_to(std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  version_ = std::max(version_, version);
}

void Store::replay(
    std::size_t index, const std::string& key, ObjectPtr object, std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  Table& table = tables_.at(index);
  const auto found = table.objects.find(key);
  const ObjectPtr current = found == table.objects.end() ? nullptr : found->second;
  if (version <= version_ || (!current && !object)) {
    return;
  }
  commit(table, key, Change{version, current, std::move(object)});
}

void Store::subscribe(std::size_t table, WakeFd& bell) {
  const std::lock_guard lock(mutex_);
  tables_.at(table).bells.insert(&bell);
}

void Store::unsubscribe(std::size_t table, WakeFd& bell) {
  const std::lock_guard lock(mutex_);
  tables_.at(table).bells.erase(&bell);
}

void Store::ring_all() {
  const std::lock_guard lock(mutex_);
  for (const Table& table : tables_) {
    for (WakeFd* bell : table.bells) {
      bell->ring();
    }
  }
}

}  // namespace shunt::test_api
