#include "backend/nft/once_each.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <random>
#include <set>

namespace shunt::backend::nft {
namespace {

KeyBytes key(std::uint8_t number) {
  KeyBytes out;
  out.append(&number, 1);
  return out;
}

TEST_CASE("a listing without doubles has every element, however often the order changed") {
  constexpr unsigned kSize = 40;
  constexpr unsigned kPerMessage = 7;
  std::mt19937 random(20261201);
  std::vector<std::uint8_t> order(kSize);
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  int whole = 0;
  int broken = 0;
  for (int round = 0; round < 2'000; ++round) {
    OnceEach once;
    std::set<std::uint8_t> seen;
    for (unsigned passed = 0; passed < kSize; passed += kPerMessage) {
      if (round % 2 == 1 && random() % 4 == 0) {
        // A few change places: not every growth changes what a listing shows.
        for (unsigned left = random() % 4; left > 0; --left) {
          std::swap(order[random() % kSize], order[random() % kSize]);
        }
      }
      for (unsigned at = passed; at < std::min(passed + kPerMessage, kSize); ++at) {
        once.add(key(order[at]));
        seen.insert(order[at]);
      }
    }
    const bool is_broken = once.broken();
    CHECK(is_broken == (seen.size() < kSize));
    ++(is_broken ? broken : whole);
  }
  CHECK(whole > 1'000);
  CHECK(broken > 100);
}

}  // namespace
}  // namespace shunt::backend::nft
