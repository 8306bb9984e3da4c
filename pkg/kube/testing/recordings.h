// What a real API server said (test/recordings/README.md).
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/decoded.h"

namespace shunt::kube::testing {

inline const std::filesystem::path kRecordings =
    std::filesystem::path(SHUNT_SOURCE_DIR) / "test" / "recordings";

inline std::string contents(const std::filesystem::path& path) {
  INFO(path);
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The events of a recorded watch, none of which may be amiss; `decode` takes a frame.
template <typename T, typename Framer>
std::vector<WatchEvent<T>> recorded_events(
    const std::string& file, Result<WatchEvent<T>> (*decode)(std::string_view frame)) {
  Framer framer;
  std::vector<WatchEvent<T>> events;
  REQUIRE(framer.feed(contents(kRecordings / file), [&](std::string_view frame) {
    auto event = decode(frame);
    INFO(file << ": " << (event ? "" : event.error().what));
    REQUIRE(event);
    CHECK(event->issues.empty());
    events.push_back(std::move(*event));
    return true;
  }));
  CHECK(framer.pending() == 0);
  return events;
}

}  // namespace shunt::kube::testing
