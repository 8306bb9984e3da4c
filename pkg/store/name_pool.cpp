#include "store/name_pool.h"

namespace shunt::store {

// The entries point into the map, and into this one from now on.
NamePool::NamePool(const NamePool& other)
    : ids_(other.ids_), entries_(other.entries_), free_(other.free_) {
  for (const auto& [name, id] : ids_) {
    entries_[id].name = &name;
  }
}

NamePool::Id NamePool::acquire(std::string_view name) {
  if (const auto found = ids_.find(name); found != ids_.end()) {
    ++entries_[found->second].users;
    return found->second;
  }
  Id id = static_cast<Id>(entries_.size());
  if (free_.empty()) {
    entries_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  const auto added = ids_.emplace(name, id).first;
  entries_[id] = {&added->first, 1};
  return id;
}

void NamePool::release(Id id) {
  Entry& entry = entries_[id];
  if (--entry.users == 0) {
    ids_.erase(ids_.find(*entry.name));
    entry.name = nullptr;
    free_.push_back(id);
  }
}

}  // namespace shunt::store
