#include "snapshot/keeper.h"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <thread>

#include "base/testing/temp_dir.h"
#include "snapshot/file.h"

namespace shunt::snapshot {
namespace {

using shunt::testing::TempDir;
using std::chrono::milliseconds;
using std::chrono::seconds;

const Clock::time_point kBegin{std::chrono::hours(1)};

std::shared_ptr<const kube::Service> service(int number) {
  kube::Service out;
  out.meta.key = {"shop", "web-" + std::to_string(number)};
  return std::make_shared<const kube::Service>(std::move(out));
}

// A store that was listed, and a keeper that writes what it holds.
struct World {
  World() {
    store.upsert(service(1));
    store.services_listed(0);
    store.slices_listed(0);
    keeper.start();
  }
  bool written(std::uint64_t times) const {
    for (int i = 0; i < 500 && keeper.status().written < times; ++i) {
      std::this_thread::sleep_for(milliseconds(10));
    }
    return keeper.status().written == times;
  }
  std::size_t services_on_disk() const {
    const auto got = read_file(path, "n1");
    return got ? got->services.size() : 0;
  }

  TempDir dir;
  std::string path = dir.path("snapshot");
  store::ObjectStore store;
  Keeper keeper{{.path = path, .node_name = "n1", .interval = seconds(10)}};
};

TEST_CASE("copies are an interval apart, or as far as their cost demands") {
  Pacing pacing(seconds(10));
  CHECK(pacing.next(kBegin) == kBegin + seconds(10));
  CHECK(pacing.next(kBegin + seconds(3)) == kBegin + seconds(10));
  pacing.copied(kBegin + seconds(10), milliseconds(1));
  CHECK(pacing.next(kBegin + seconds(11)) == kBegin + seconds(20));
  pacing.copied(kBegin + seconds(20), milliseconds(300));
  CHECK(pacing.next(kBegin + seconds(21)) == kBegin + seconds(80));
}

TEST_CASE("a store that is not complete is not kept") {
  const TempDir dir;
  Keeper keeper({.path = dir.path("snapshot"), .node_name = "n1"});
  store::ObjectStore store;
  store.services_listed(0);
  CHECK_FALSE(keeper.offer(store, kBegin));
  CHECK_FALSE(keeper.offer(store, kBegin + seconds(100)));
  CHECK(keeper.status().copy.count() == 0);
}

TEST_CASE("what changed is written when it is time, and what did not is not") {
  World world;
  CHECK(world.keeper.offer(world.store, kBegin) == kBegin + seconds(10));
  CHECK(world.keeper.offer(world.store, kBegin + seconds(9)) == kBegin + seconds(10));
  CHECK(world.keeper.status().written == 0);
  CHECK(world.keeper.offer(world.store, kBegin + seconds(10)) == kBegin + seconds(20));
  REQUIRE(world.written(1));
  CHECK(world.services_on_disk() == 1);
  CHECK_FALSE(world.keeper.offer(world.store, kBegin + seconds(20)));
  CHECK_FALSE(world.keeper.offer(world.store, kBegin + seconds(100)));

  world.store.upsert(service(2));
  CHECK(world.keeper.offer(world.store, kBegin + seconds(101)) == kBegin + seconds(111));
  REQUIRE(world.written(2));
  CHECK(world.services_on_disk() == 2);
  world.store.upsert(service(3));
  CHECK(world.keeper.offer(world.store, kBegin + seconds(102)) == kBegin + seconds(111));
  CHECK(world.keeper.status().bytes == std::filesystem::file_size(world.path));
}

TEST_CASE("a file that could not be written is tried again") {
  World world;
  std::filesystem::create_directory(world.path + ".new");
  (void)world.keeper.offer(world.store, kBegin);
  CHECK(world.keeper.offer(world.store, kBegin + seconds(10)) == kBegin + seconds(20));
  for (int i = 0; i < 500 && world.keeper.status().failed == 0; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  REQUIRE(world.keeper.status().failed == 1);
  std::filesystem::remove(world.path + ".new");
  CHECK(world.keeper.offer(world.store, kBegin + seconds(20)) == kBegin + seconds(30));
  REQUIRE(world.written(1));
  CHECK(world.services_on_disk() == 1);
}

TEST_CASE("stop is quick, and what was not begun is not written") {
  World world;
  const auto begun = Clock::now();
  world.keeper.stop();
  CHECK(Clock::now() - begun < seconds(1));
  (void)world.keeper.offer(world.store, kBegin);
  CHECK(world.keeper.offer(world.store, kBegin + seconds(10)));
  CHECK_FALSE(std::filesystem::exists(world.path));
}

}  // namespace
}  // namespace shunt::snapshot
