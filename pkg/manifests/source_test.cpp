// The whole of it: a thread that watches a directory and fills mailboxes.
#include "manifests/source.h"

#include <poll.h>

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <thread>

#include "manifests/testing/files.h"

namespace shunt::manifests {
namespace {

using std::chrono::seconds;
using testing::Files;
using testing::service;
using Held = std::map<std::string, std::string>;

// A reader of the mailboxes, as the sync loop is one.
struct Reader {
  WakeFd wake;
  Mailbox<std::shared_ptr<const kube::Service>> services{wake};
  Mailbox<std::shared_ptr<const kube::EndpointSlice>> slices{wake};
  Mailbox<std::shared_ptr<const kube::Node>> nodes{wake};
  Mailbox<std::shared_ptr<const kube::ServiceCidr>> cidrs{wake};

  Outboxes outboxes() { return {services, slices, nodes, cidrs}; }

  void drain() {
    auto mail = services.drain();
    for (const auto& [key, slot] : mail.changes) {
      held[key] = (*slot.value)->cluster_ip;
      list_of[key] = slot.list;
    }
    if (mail.listed) {
      ++lists;
      std::erase_if(held, [&](const auto& one) { return list_of[one.first] < *mail.listed; });
    }
    for (const auto& [key, slot] : nodes.drain().changes) {
      node = key;
    }
    slices_listed = slices.drain().listed || slices_listed;
    cidrs_listed = cidrs.drain().listed || cidrs_listed;
  }
  // Reads until `enough`, five seconds at most.
  template <typename Enough>
  bool read_until(const Enough& enough) {
    const auto deadline = Clock::now() + seconds(5);
    while (!enough() && Clock::now() < deadline) {
      pollfd fd{wake.fd(), POLLIN, 0};
      (void)::poll(&fd, 1, 20);
      wake.clear();
      drain();
    }
    return enough();
  }
  bool read_until_held(const Held& wanted) {
    return read_until([&] { return held == wanted && lists > 0; });
  }

  Held held;
  std::map<std::string, std::uint32_t> list_of;
  std::string node;
  int lists = 0;
  bool slices_listed = false;
  bool cidrs_listed = false;
};

SourceOptions options_for(const std::string& directory) {
  return {
      .directory = directory,
      .node_name = "n1",
      .debounce = Millis(20),
      .look_every = Millis(60'000)};
}

TEST_CASE("mailboxes follow the directory") {
  const Files files;
  files.write("a.yaml", service("a", 1));
  files.write(
      "nodes.yaml",
      "{kind: Node, apiVersion: v1, metadata: {name: n2}}\n---\n"
      "{kind: Node, apiVersion: v1, metadata: {name: n1}}\n");
  Reader reader;
  Source source(options_for(files.path()), reader.outboxes());
  source.start();
  CHECK(reader.read_until_held({{"default/a", "10.0.0.1"}}));
  CHECK(reader.node == "n1");
  CHECK(reader.slices_listed);
  CHECK(reader.cidrs_listed);

  files.write("a.yaml", service("a", 2));
  CHECK(reader.read_until_held({{"default/a", "10.0.0.2"}}));
  files.write_in_place("b.yaml", service("b", 3));
  CHECK(reader.read_until_held({{"default/a", "10.0.0.2"}, {"default/b", "10.0.0.3"}}));
  files.remove("a.yaml");
  CHECK(reader.read_until_held({{"default/b", "10.0.0.3"}}));
  // It counts a list a little after the reader has it.
  CHECK(reader.read_until([&] { return source.status().lists >= 4; }));
  CHECK(source.status().problems == 0);
}

TEST_CASE("an empty directory is an empty cluster, one that is not there is nothing") {
  const Files files;
  Reader reader;
  Source source(options_for(files.path("later")), reader.outboxes());
  source.start();
  std::this_thread::sleep_for(Millis(200));
  reader.drain();
  CHECK(reader.lists == 0);
  std::filesystem::create_directory(files.path("later"));
  CHECK(reader.read_until_held({}));
}

TEST_CASE("a ConfigMap is followed through its symlinks") {
  const Files files;
  const auto publish = [&](const std::string& version, int host) {
    std::filesystem::create_directory(files.path("..v" + version));
    files.write_in_place("..v" + version + "/a.yaml", service("a", host));
    std::filesystem::create_directory_symlink("..v" + version, files.path("..data.new"));
    std::filesystem::rename(files.path("..data.new"), files.path("..data"));
  };
  publish("1", 1);
  std::filesystem::create_symlink("..data/a.yaml", files.path("a.yaml"));
  Reader reader;
  Source source(options_for(files.path()), reader.outboxes());
  source.start();
  REQUIRE(reader.read_until_held({{"default/a", "10.0.0.1"}}));
  publish("2", 2);
  CHECK(reader.read_until_held({{"default/a", "10.0.0.2"}}));
}

TEST_CASE("a directory that is moved away and replaced is followed") {
  const Files files;
  std::filesystem::create_directory(files.path("d"));
  files.write("d/a.yaml", service("a", 1));
  Reader reader;
  Source source(options_for(files.path("d")), reader.outboxes());
  source.start();
  REQUIRE(reader.read_until_held({{"default/a", "10.0.0.1"}}));
  std::filesystem::rename(files.path("d"), files.path("old"));
  std::filesystem::create_directory(files.path("d"));
  files.write("d/a.yaml", service("a", 2));
  CHECK(reader.read_until_held({{"default/a", "10.0.0.2"}}));
}

TEST_CASE("stop is quick and can be followed by another start") {
  const Files files;
  Reader reader;
  Source source(options_for(files.path()), reader.outboxes());
  source.start();
  REQUIRE(reader.read_until_held({}));
  const auto begun = Clock::now();
  source.stop();
  CHECK(Clock::now() - begun < seconds(1));
  source.start();
  files.write("a.yaml", service("a", 1));
  CHECK(reader.read_until_held({{"default/a", "10.0.0.1"}}));
}

}  // namespace
}  // namespace shunt::manifests
