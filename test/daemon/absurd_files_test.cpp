// A directory of manifests in which a thousand good Services stand beside files that nobody can
// read: the good ones work, each bad file is named once, and works when it is mended.

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "daemon/crowd.h"
#include "daemon/needs_root.h"

namespace shunt::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
namespace fs = std::filesystem;

struct BadFile {
  std::string name;
  std::string text;
  std::size_t works = 0;  // frontends that it gives all the same
  bool silent = false;    // there is nothing to say of it
};

// Nine lists of nine of the one before: 9^9 scalars.
std::string alias_bomb() {
  std::string out = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    out += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 0; k < 8; ++k) {
      out += ", " + before;
    }
    out += "]\n";
  }
  return out;
}

std::vector<BadFile> bad_files() {
  const std::string head = "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"";
  const std::string spec =
      "\"},\"spec\":{\"clusterIP\":\"10.112.202.1\",\"ports\":[{\"port\":80}]}}";
  return {
      {"utf8.yaml", head + "bad-\xff\xfe" + spec},
      {"utf8.json", head + "bad-\xff\xfe" + spec},
      {"surrogate.json", head + "bad-\\ud800" + spec},
      {"control.yaml", head + "bad-\\u001b[31m\\nts=0 level=error msg=forged" + spec},
      {"truncated.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: cut, namespace: "},
      {"truncated.json", (head + "cut" + spec).substr(0, 60)},
      {"bomb.yaml", alias_bomb()},
      {"deep.yaml", std::string(100'000, '[')},
      {"deep.json", std::string(100'000, '[')},
      {"empty.yaml", "", 0, true},
      {"empty.json", "", 0, true},
      {"nul.yaml", std::string(1, '\0')},
      {"nul.json", std::string(1, '\0')},
      {"number.json",
       "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"spec\":{\"ports\":[{\"port\":1e999}]}}"},
      {"no-ip.yaml",
       "apiVersion: v1\nkind: Service\nmetadata: {name: no-ip}\nspec: {ports: [{port: 80}]}\n"},
      {"no-kind.yaml", "apiVersion: v1\nmetadata: {name: no-kind}\n"},
      {"text.yaml", "gopher\n"},
      {"name\nts=2 level=warning msg=forged.yaml", "gopher\n"},
      // Of equal keys the last counts, as in Go.
      {"keys-twice.json",
       "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"twice\"},"
       "\"spec\":{\"clusterIP\":\"gopher\",\"clusterIP\":\"10.112.202.2\",\"ports\":[{\"port\":80}]"
       "}}",
       1,
       true}};
}

// A directory of its own.
class Manifests {
 public:
  Manifests() {
    if (::mkdtemp(directory_.data()) == nullptr) {
      throw std::runtime_error("no temporary directory");
    }
  }
  Manifests(const Manifests&) = delete;
  Manifests& operator=(const Manifests&) = delete;
  ~Manifests() {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  const std::string& directory() const { return directory_; }
  void write(const std::string& name, const std::string& text) const {
    const std::string hidden = path("." + name);
    std::ofstream(hidden, std::ios::binary) << text;
    if (fs::is_directory(fs::symlink_status(path(name)))) {  // which does not give way to a file
      fs::remove(path(name));
    }
    fs::rename(hidden, path(name));
  }
  void write(const std::string& name, const std::vector<json>& objects) const {
    write(name, json{{"apiVersion", "v1"}, {"kind", "List"}, {"items", objects}}.dump());
  }

 private:
  std::string directory_ = "/tmp/kube-shunt-test-XXXXXX";
};

std::chrono::milliseconds passed_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
}

// How long it took until so many frontends were in the kernel.
std::chrono::milliseconds await_frontends(const World& world, std::size_t count) {
  const auto begin = std::chrono::steady_clock::now();
  std::optional<json> status;
  while (passed_since(begin) < 30s) {
    status = world.status();
    if (status && status->value("synced", false) && status->value("idle", false) &&
        status->at("frontends") == count) {
      return passed_since(begin);
    }
    std::this_thread::sleep_for(10ms);
  }
  throw std::runtime_error(
      "no " + std::to_string(count) + " frontends\n" + (status ? status->dump() : "no status") +
      "\n" + world.daemon_log());
}

// A file that gave a frontend already changes the number of them not.
std::chrono::milliseconds time_until_answer(const Pods& pods, const std::string& frontend) {
  const auto begin = std::chrono::steady_clock::now();
  while (pods.ask(frontend) != "10.64.0.4" && passed_since(begin) < 30s) {
    std::this_thread::sleep_for(10ms);
  }
  return passed_since(begin);
}

std::size_t times_said(const std::string& log, const std::string& file) {
  std::string shown = file;  // as the log has it
  if (const auto at = shown.find('\n'); at != std::string::npos) {
    shown.replace(at, 1, "\\n");
  }
  std::size_t count = 0;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    count += line.find(" level=warning ") != std::string::npos &&
                     line.find("problem=\"" + shown + ":") != std::string::npos
                 ? 1
                 : 0;
  }
  return count;
}

std::vector<json> mended(std::size_t i) {
  const std::string name = "mended-" + std::to_string(i);
  return {
      service(name, {"10.112.203." + std::to_string(i + 1)}), slice(name, "IPv4", {"10.64.0.4"})};
}

TEST_CASE("files that nobody can read harm none of a thousand Services beside them") {
  SHUNT_NEEDS_ROOT();
  const Manifests manifests;
  manifests.write("good.json", crowd());
  World::Options options;
  options.daemon_flags = {"--manifests", manifests.directory()};
  const World world(options);
  const Pods pods(world);
  await_frontends(world, kCrowd);
  const TableListing before = list_table(world);
  pods.check_crowd(before);

  std::vector<BadFile> bad = bad_files();
  std::size_t works = kCrowd;
  for (const BadFile& file : bad) {
    manifests.write(file.name, file.text);
    works += file.works;
  }
  bad.push_back({"directory.yaml", ""});
  fs::create_directory(manifests.path("directory.yaml"));
  bad.push_back({"dangling.yaml", ""});
  fs::create_symlink("nowhere.yaml", manifests.path("dangling.yaml"));
  bad.push_back({"loop.yaml", ""});
  fs::create_symlink("loop.yaml", manifests.path("loop.yaml"));
  bad.push_back({"huge.yaml", ""});
  std::ofstream(manifests.path("huge.yaml")).flush();
  fs::resize_file(manifests.path("huge.yaml"), std::uintmax_t{1} << 34U);
  bad.push_back({"pipe.yaml", ""});
  REQUIRE(::mkfifo(manifests.path("pipe.yaml").c_str(), 0600) == 0);
  await_frontends(world, works);
  // Each look is another chance to say it again.
  for (std::size_t i = 0; i < 3; ++i) {
    manifests.write("more.json", mended(250 - i));
    world.await_log("manifests read", i + 3);
    await_frontends(world, works + 1);
  }
  fs::remove(manifests.path("more.json"));
  await_frontends(world, works);
  pods.check_crowd(list_table(world));
  const std::string log = world.daemon_log();
  for (const BadFile& file : bad) {
    INFO(file.name);
    CHECK(times_said(log, file.name) == (file.silent ? 0 : 1));
  }
  check_lines(log);

  for (std::size_t i = 0; i < bad.size(); ++i) {
    INFO(bad[i].name);
    works += 1 - bad[i].works;
    manifests.write(bad[i].name, mended(i));
    CHECK(await_frontends(world, works) < 3s);
    CHECK(time_until_answer(pods, "10.112.203." + std::to_string(i + 1) + ":80") < 3s);
  }
  pods.check_crowd(list_table(world));

  CHECK(starts(world.daemon_log()) == 1);

  for (const BadFile& file : bad) {
    fs::remove(manifests.path(file.name));
  }
  await_frontends(world, kCrowd);
  check_same(before, list_table(world));
}

}  // namespace
}  // namespace shunt::test
