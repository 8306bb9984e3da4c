// Every name that many objects repeat (nodes, zones, namespaces, the words of enumerations), held
// once and spoken of by number. Names are counted: one that nobody uses any more is freed, so nodes
// that come and go for years leave nothing behind.
//
// Owned by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shunt::store {

class NamePool {
 public:
  using Id = std::uint32_t;

  NamePool() = default;
  NamePool(const NamePool& other);  // the same names under the same numbers
  NamePool(NamePool&&) = default;
  NamePool& operator=(const NamePool&) = delete;
  NamePool& operator=(NamePool&&) = default;
  ~NamePool() = default;

  Id acquire(std::string_view name);  // one more user
  void release(Id id);                // one less; `id` means nothing after the last
  const std::string& name(Id id) const { return *entries_[id].name; }
  std::size_t size() const { return ids_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const {
      return std::hash<std::string_view>{}(name);
    }
  };
  struct Entry {
    const std::string* name = nullptr;  // the key in ids_
    std::uint32_t users = 0;
  };
  std::unordered_map<std::string, Id, Hash, std::equal_to<>> ids_;
  std::vector<Entry> entries_;
  std::vector<Id> free_;
};

}  // namespace shunt::store
