// How long the loads of the endurance tests last, and blows that are dealt meanwhile.
#pragma once

#include <chrono>
#include <cstdlib>
#include <thread>

namespace shunt::test {

// SHUNT_ENDURANCE_SECONDS; 10 unless told.
inline std::chrono::milliseconds load_time() {
  const char* seconds = std::getenv("SHUNT_ENDURANCE_SECONDS");
  return std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : 10);
}

// Does `blow` so many times, evenly over the time of the load.
template <typename Blow>
void strike(int times, std::chrono::milliseconds time, const Blow& blow) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) {
    std::this_thread::sleep_until(begin + (i + 1) * time / (times + 1));
    blow(i);
  }
}

}  // namespace shunt::test
