// Whether a listing of a hash set can be believed. The kernel lists a set in several messages and
// finds its place for the next one by counting elements from the start (nft_rhash_walk,
// Linux 6.18). A worker of its own grows the hash table some time after the additions, and then the
// order is another: elements that were passed already come again, and as many others never come.
// The generation of the ruleset stays as it was, so NLM_F_DUMP_INTR does not tell. Doubles do:
// every message's walk passes all elements, so a listing is as long as the set, or longer, and one
// without doubles is whole.
#pragma once

#include <algorithm>
#include <vector>

#include "backend/nft/ruleset.h"

namespace shunt::backend::nft {

class OnceEach {
 public:
  void add(const KeyBytes& key) { keys_.push_back(key); }
  // Something came twice. Sorts.
  bool broken() {
    std::sort(keys_.begin(), keys_.end());
    return std::adjacent_find(keys_.begin(), keys_.end()) != keys_.end();
  }

 private:
  std::vector<KeyBytes> keys_;  // no hashes of them: whoever makes Services could make two alike
};

}  // namespace shunt::backend::nft
