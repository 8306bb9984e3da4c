#include "manifests/directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "manifests/testing/files.h"

namespace shunt::manifests {
namespace {

using testing::Files;
using testing::service;
using Names = std::vector<std::string>;

Names names_of(const Directory& directory) {
  Names out;
  for (const auto& one : directory.objects().services) {
    out.push_back(one->meta.key.name + "=" + one->cluster_ip);
  }
  return out;
}

Directory::Look look(Directory& directory) {
  const auto got = directory.look();
  REQUIRE(got);
  return *got;
}

TEST_CASE("manifests are told by their names") {
  const Files files;
  for (const char* name : {"a.yaml", "b.yml", "c.json", "d.txt", ".e.yaml", "f.yaml~", "yaml"}) {
    files.write(name, service(std::string(1, name[0] == '.' ? 'e' : name[0]), 1));
  }
  std::filesystem::create_directory(files.path("sub"));
  files.write("sub/g.yaml", service("g", 1));
  Directory directory(files.path());
  CHECK(look(directory).changed);
  CHECK(names_of(directory) == Names{"a=10.0.0.1", "b=10.0.0.1", "c=10.0.0.1"});
  CHECK(directory.files() == 3);
}

TEST_CASE("only what changed on disk is read again") {
  const Files files;
  files.write_old("a.yaml", service("a", 1));
  files.write_old("b.yaml", service("b", 1));
  Directory directory(files.path());
  REQUIRE(look(directory).changed);
  const auto* before = directory.objects().services[0].get();
  CHECK_FALSE(look(directory).changed);
  files.write("b.yaml", service("b", 2));
  CHECK(look(directory).changed);
  CHECK(names_of(directory) == Names{"a=10.0.0.1", "b=10.0.0.2"});
  CHECK(directory.objects().services[0].get() == before);
}

TEST_CASE(
    "a write right after another of the same size is seen, and the same bytes are no change") {
  const Files files;
  files.write("a.yaml", service("a", 1));
  Directory directory(files.path());
  CHECK(look(directory).unsettled);
  files.write_in_place("a.yaml", service("a", 2));
  CHECK(look(directory).changed);
  CHECK_FALSE(look(directory).changed);
  CHECK(names_of(directory) == Names{"a=10.0.0.2"});
}

TEST_CASE("a file that is gone takes its objects along") {
  const Files files;
  files.write("a.yaml", service("a", 1));
  Directory directory(files.path());
  REQUIRE(look(directory).changed);
  files.remove("a.yaml");
  CHECK(look(directory).changed);
  CHECK(names_of(directory).empty());
}

TEST_CASE("a file that cannot be parsed keeps what it last gave, and that is said once") {
  const Files files;
  files.write("a.yaml", service("a", 1));
  Directory directory(files.path());
  REQUIRE(look(directory).changed);
  files.write("a.yaml", service("a", 2) + "x: [");
  const auto broken = look(directory);
  CHECK_FALSE(broken.changed);
  REQUIRE(broken.news.size() == 1);
  CHECK(broken.news[0].starts_with("a.yaml: line "));
  CHECK(broken.news[0].ends_with(", it counts as it was"));
  CHECK(look(directory).news.empty());
  CHECK(names_of(directory) == Names{"a=10.0.0.1"});
  files.write("a.yaml", service("a", 3));
  CHECK(look(directory).changed);
  CHECK(names_of(directory) == Names{"a=10.0.0.3"});
}

TEST_CASE("an object that cannot be read loses only itself, and is said once") {
  const Files files;
  files.write("a.yaml", service("a", 1) + "---\n{kind: Service, apiVersion: v1, spec: 5}\n");
  Directory directory(files.path());
  CHECK(look(directory).news.size() == 1);
  files.write("a.yaml", service("a", 2) + "---\n{kind: Service, apiVersion: v1, spec: 5}\n");
  CHECK(look(directory).news.empty());
  CHECK(names_of(directory) == Names{"a=10.0.0.2"});
}

TEST_CASE("of two files with one object the first by name wins, until it goes") {
  const Files files;
  files.write("b.yaml", service("web", 2));
  Directory directory(files.path());
  CHECK(look(directory).news.empty());
  files.write("a.yaml", service("web", 1));
  const auto both = look(directory);
  CHECK(both.news == Names{"b.yaml: Service default/web: set aside, it is in a.yaml as well"});
  CHECK(names_of(directory) == Names{"web=10.0.0.1"});
  files.write("c.yaml", service("other", 3));
  CHECK(look(directory).news.empty());
  files.remove("a.yaml");
  CHECK(look(directory).changed);
  CHECK(names_of(directory) == Names{"web=10.0.0.2", "other=10.0.0.3"});
}

TEST_CASE("what is no regular file is not waited for") {
  const Files files;
  REQUIRE(::mkfifo(files.path("a.yaml").c_str(), 0600) == 0);
  std::filesystem::create_directory(files.path("b.yaml"));
  std::filesystem::create_symlink("nowhere", files.path("c.yaml"));
  files.write("d.yaml", service("d", 1));
  Directory directory(files.path());
  CHECK(look(directory).news.size() == 3);
  CHECK(look(directory).news.empty());
  CHECK(names_of(directory) == Names{"d=10.0.0.1"});
}

TEST_CASE("a directory that is away changes nothing") {
  auto files = std::make_unique<Files>();
  files->write("a.yaml", service("a", 1));
  Directory directory(files->path());
  REQUIRE(look(directory).changed);
  files.reset();
  CHECK_FALSE(directory.look());
  CHECK(names_of(directory) == Names{"a=10.0.0.1"});
}

}  // namespace
}  // namespace shunt::manifests
