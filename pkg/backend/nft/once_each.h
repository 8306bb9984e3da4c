// Whether a listing of a hash set can be believed. The kernel lists a set in several messages and
// finds its place for the next one by counting elements from the start (nft_rhash_walk,
// Linux 6.18). A worker of its own grows the hash table some time after the additions, and then the
// order is another: elements that were passed already come again, and as many others never come.
// The generation of the ruleset stays as it was, so NLM_F_DUMP_INTR does not tell. Doubles do:
// every message's walk passes all elements, so a listing is as long as the set, or longer, and one
// without doubles is whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace shunt::backend::nft {

// Takes eight bytes a key. Two keys with one hash look like a double, which costs another listing:
// once in thirty million listings of a million elements.
class OnceEach {
 public:
  void add(std::span<const std::uint8_t> key) {
    hashes_.push_back(
        std::hash<std::string_view>{}({reinterpret_cast<const char*>(key.data()), key.size()}));
  }
  // Something came twice. Sorts.
  bool broken() {
    std::sort(hashes_.begin(), hashes_.end());
    return std::adjacent_find(hashes_.begin(), hashes_.end()) != hashes_.end();
  }

 private:
  std::vector<std::size_t> hashes_;
};

}  // namespace shunt::backend::nft
