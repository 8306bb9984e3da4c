#include "test/apiserver/store.h"

#include <algorithm>

namespace shunt::test_api {
namespace {

// `objects` with those of `changed` in their place; a null one is absent. Both are in the order of
// keys, so that no copy of the table is needed: paging through a large one asks for this each time.
std::vector<ObjectPtr> merged(
    const std::map<std::string, ObjectPtr>& objects,
    const std::map<std::string, ObjectPtr>& changed) {
  std::vector<ObjectPtr> out;
  out.reserve(objects.size() + changed.size());
  auto change = changed.begin();
  const auto take_change = [&] {
    if (change->second) {
      out.push_back(change->second);
    }
    ++change;
  };
  for (const auto& [key, object] : objects) {
    while (change != changed.end() && change->first < key) {
      take_change();
    }
    if (change != changed.end() && change->first == key) {
      take_change();
    } else {
      out.push_back(object);
    }
  }
  while (change != changed.end()) {
    take_change();
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

std::shared_ptr<const Store::Objects> Store::state_at(Table& table, std::uint64_t version) const {
  constexpr std::size_t kSnapshots = 2;  // the latest one, and the one that somebody pages through
  const auto known = std::ranges::find(table.snapshots, version, &Table::Snapshot::version);
  if (known != table.snapshots.end()) {
    return known->objects;
  }
  // Newest first: the oldest undoing of a key, which comes last, is the one that counts.
  std::map<std::string, ObjectPtr> undone;
  for (auto it = table.log.rbegin(); it != table.log.rend() && it->version > version; ++it) {
    undone[key_of(it->before ? *it->before : *it->after)] = it->before;
  }
  auto objects = std::make_shared<const Objects>(merged(table.objects, undone));
  table.snapshots.push_back({version, objects});
  if (table.snapshots.size() > kSnapshots) {
    table.snapshots.pop_front();
  }
  return objects;
}

Store::Listing Store::list(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  Table& table = tables_.at(index);
  return {version_, state_at(table, table.changed)};
}

Answer<Store::Listing> Store::list_at(std::size_t index, std::uint64_t version) const {
  const std::lock_guard lock(mutex_);
  Table& table = tables_.at(index);
  if (version > version_) {
    return refuse(version_too_large(version, version_));
  }
  if (version < table.oldest) {
    return refuse(expired_watch(version, table.oldest));
  }
  const auto later = std::ranges::upper_bound(table.log, version, {}, &Change::version);
  const std::uint64_t last = later == table.log.end()     ? table.changed
                             : later == table.log.begin() ? table.oldest
                                                          : std::prev(later)->version;
  return Listing{version, state_at(table, last)};
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
  Change change{version_ + 1, current, *wanted, nullptr};
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
  table.changed = change.version;
  if (change.after) {
    table.objects[key] = change.after;
  } else {
    table.objects.erase(key);
    change.gone = at_version(*change.before, change.version);
  }
  table.log.push_back(std::move(change));
  if (table.log.size() > log_size_) {
    table.lost = table.log.front().version;
    table.log.pop_front();
    // As the real watch cache counts: one before the oldest event it still has.
    table.oldest = table.log.empty() ? version_ : table.log.front().version - 1;
    // Nor may a snapshot keep alive what the log has let go.
    std::erase_if(table.snapshots, [&](const Table::Snapshot& snapshot) {
      return snapshot.version < table.oldest;
    });
  }
  for (WakeFd* bell : table.bells) {
    bell->ring();
  }
}

Store::Batch Store::changes_after(std::size_t index, std::uint64_t version) const {
  const std::lock_guard lock(mutex_);
  const Table& table = tables_.at(index);
  const auto first = std::ranges::upper_bound(table.log, version, {}, &Change::version);
  return {version_, table.oldest, table.lost, announced_, {first, table.log.end()}};
}

void Store::announce() {
  {
    const std::lock_guard lock(mutex_);
    announced_ = version_;
  }
  ring_all();
}

void Store::forget_log() {
  const std::lock_guard lock(mutex_);
  for (Table& table : tables_) {
    table.lost = table.log.empty() ? table.lost : table.log.back().version;
    table.log.clear();
    table.snapshots.clear();
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
  commit(table, key, Change{version, current, std::move(object), nullptr});
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
