#include "config/config_file_watch.h"

#include <poll.h>
#include <stdlib.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "config/testing.h"

namespace shunt::config {
namespace {

namespace fs = std::filesystem;

class Directory {
 public:
  Directory() {
    char name[] = "/tmp/kube-shunt-watch-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Directory() { fs::remove_all(path); }
  std::string file(const std::string& name) const { return path + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(file(name)).parent_path());
    std::ofstream(file(name)) << text;
  }
  // Puts a symlink in place in one step, as kubelet does.
  void point(const std::string& name, const std::string& target) const {
    fs::create_symlink(target, file(name + ".new"));
    fs::rename(file(name + ".new"), file(name));
  }
  std::string path;
};

// Events are in the queue when the call that makes them has returned.
bool rings(const ConfigFileWatch& watch) {
  pollfd poll{watch.fd(), POLLIN, 0};
  return ::poll(&poll, 1, 0) == 1;
}

ConfigFileWatch watch_of(const std::string& path, const std::string& content) {
  auto watch = ConfigFileWatch::open(path, content);
  REQUIRE(watch);
  return std::move(*watch);
}

TEST_CASE("a file with other content is a change, once") {
  const Directory directory;
  directory.write("config", "one");
  auto watch = watch_of(directory.file("config"), "one");
  CHECK_FALSE(rings(watch));
  CHECK_FALSE(watch.changed());

  directory.write("config", "two");
  CHECK(rings(watch));
  CHECK(watch.changed());
  CHECK_FALSE(rings(watch));
  CHECK_FALSE(watch.changed());
}

TEST_CASE("the same bytes again, and files beside it, are no change") {
  const Directory directory;
  directory.write("config", "one");
  auto watch = watch_of(directory.file("config"), "one");
  directory.write("config", "one");
  directory.write("other", "two");
  CHECK(rings(watch));
  CHECK_FALSE(watch.changed());
}

TEST_CASE("what changed between loading and watching is found by looking once") {
  const Directory directory;
  directory.write("config", "two");
  CHECK(watch_of(directory.file("config"), "one").changed());
}

TEST_CASE("a file that is renamed over it is a change") {
  const Directory directory;
  directory.write("config", "one");
  auto watch = watch_of(directory.file("config"), "one");
  directory.write("config.tmp", "two");
  CHECK_FALSE(watch.changed());
  fs::rename(directory.file("config.tmp"), directory.file("config"));
  CHECK(rings(watch));
  CHECK(watch.changed());
}

TEST_CASE("a file that is written in pieces is a change at each, the last of them whole") {
  const Directory directory;
  directory.write("config", "one");
  auto watch = watch_of(directory.file("config"), "one");
  std::ofstream file(directory.file("config"));
  file << "t" << std::flush;
  CHECK(rings(watch));
  CHECK(watch.changed());
  file << "wo" << std::flush;
  CHECK(rings(watch));
  CHECK(watch.changed());
}

TEST_CASE("a file that is gone is no change, one that comes back is when it is another") {
  const Directory directory;
  directory.write("config", "one");
  auto watch = watch_of(directory.file("config"), "one");
  fs::remove(directory.file("config"));
  CHECK(rings(watch));
  CHECK_FALSE(watch.changed());
  directory.write("config", "one");
  CHECK(rings(watch));
  CHECK_FALSE(watch.changed());
  fs::remove(directory.file("config"));
  CHECK_FALSE(watch.changed());
  directory.write("config", "two");
  CHECK(rings(watch));
  CHECK(watch.changed());
}

TEST_CASE("a ConfigMap that is swapped is seen, each time") {
  const Directory directory;
  directory.write("..1/config", "one");
  directory.point("..data", "..1");
  directory.point("config", "..data/config");
  auto watch = watch_of(directory.file("config"), "one");
  for (const char* version : {"2", "3", "4"}) {
    directory.write(std::string("..") + version + "/config", version);
    directory.point("..data", std::string("..") + version);
    CHECK(rings(watch));
    CHECK(watch.changed());
    CHECK_FALSE(rings(watch));
  }
  // kubelet takes the old one away; and a swap that brings the same is none.
  fs::remove_all(directory.file("..3"));
  CHECK_FALSE(watch.changed());
  directory.write("..5/config", "4");
  directory.point("..data", "..5");
  CHECK_FALSE(watch.changed());
}

TEST_CASE(
    "a file that is a symlink to elsewhere is followed, also when it points elsewhere later") {
  const Directory directory;
  const Directory elsewhere;
  elsewhere.write("a/real", "one");
  elsewhere.write("b/real", "one");
  directory.point("config", elsewhere.file("a/real"));
  auto watch = watch_of(directory.file("config"), "one");
  elsewhere.write("a/real", "two");
  CHECK(rings(watch));
  CHECK(watch.changed());

  directory.point("config", elsewhere.file("b/real"));
  CHECK(rings(watch));
  CHECK(watch.changed());
  elsewhere.write("b/real", "three");
  CHECK(rings(watch));
  CHECK(watch.changed());
}

TEST_CASE("symlinks in a circle end, and a directory that is not there is an error") {
  const Directory directory;
  directory.point("a", "b");
  directory.point("b", "a");
  CHECK_FALSE(watch_of(directory.file("a"), "").changed());
  CHECK_FALSE(ConfigFileWatch::open(directory.file("none/config"), ""));
}

}  // namespace
}  // namespace shunt::config
