#include "runner/runner.h"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "runner/compare.h"

namespace shunt::conformance {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// A directory of its own, gone at the end.
class TempDirectory {
 public:
  TempDirectory() {
    std::string name = (fs::temp_directory_path() / "conformance-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("mkdtemp");
    }
    path_ = name;
  }
  ~TempDirectory() {
    std::error_code ignored;  // a directory that is left behind fails no test
    fs::remove_all(path_, ignored);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const fs::path& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }

 private:
  fs::path path_;
};

std::string file_of(const std::string& kind, const json& cases) {
  return json{{"schema", "node-proxy-conformance/1"}, {"kind", kind}, {"cases", cases}}.dump();
}

const Runners kRunners{
    {"good", [](const json&, const RunOptions&) { return CaseResult{}; }},
    {"bad",
     [](const json&, const RunOptions&) {
       return CaseResult{Outcome::Failed, {"step 0: expected 1, seen 2"}};
     }},
    {"broken",
     [](const json& c, const RunOptions&) -> CaseResult {
       (void)c.at("missing");  // throws
       return {};
     }},
};

TEST_CASE("files are found anywhere, and cases run by their kind") {
  const TempDirectory dir;
  dir.write("a.json", file_of("good", {{{"id", "g-1"}}, {{"id", "g-2"}}}));
  dir.write("deep/er/b.json", file_of("bad", {{{"id", "b-1"}}}));
  dir.write("c.json", file_of("unheard-of", {{{"id", "u-1"}}}));
  dir.write("d.json", file_of("broken", {{{"id", "x-1"}}}));
  dir.write("other.json", "{\"not\": \"ours\"}");
  std::ostringstream out;
  const Totals totals = run({dir.path()}, kRunners, {}, out);
  CHECK(totals.passed == 2);
  CHECK(totals.failed == 2);
  CHECK(totals.skipped == 1);
  CHECK_FALSE(totals.ok());
  CHECK(out.str().find("FAIL b-1: step 0: expected 1, seen 2\n") != std::string::npos);
  CHECK(out.str().find("FAIL x-1: the case could not be run: ") != std::string::npos);
  CHECK(out.str().find("SKIP u-1: kind not built yet\n") != std::string::npos);
  CHECK(out.str().find("a.json: 2 passed, 0 failed, 0 skipped\n") != std::string::npos);
  CHECK(out.str().ends_with("2 passed, 2 failed, 1 skipped\n"));
}

TEST_CASE("a case that crashes has failed, and says how") {
  const TempDirectory dir;
  dir.write("a.json", file_of("crash", {{{"id", "c-1"}}}));
  dir.write("b.json", file_of("good", {{{"id", "g-1"}}}));
  Runners runners = kRunners;
  runners["crash"] = [](const json&, const RunOptions&) -> CaseResult {
    ::raise(SIGKILL);
    return {};
  };
  std::ostringstream out;
  const Totals totals = run({dir.path()}, runners, {}, out);
  CHECK(totals.failed == 1);
  CHECK(totals.passed == 1);
  CHECK(out.str().find("FAIL c-1: the case could not be run: died: Killed\n") != std::string::npos);
}

TEST_CASE("cases that run together are printed in their order") {
  const TempDirectory dir;
  const json slow_first = {{{"id", "1"}, {"ms", 200}}, {{"id", "2"}, {"ms", 0}}};
  dir.write("a.json", file_of("slow", slow_first));
  dir.write("b.json", file_of("slow", {{{"id", "3"}, {"ms", 0}}}));
  const Runners runners{{"slow", [](const json& c, const RunOptions&) {
                           std::this_thread::sleep_for(std::chrono::milliseconds(c["ms"]));
                           return CaseResult{Outcome::Failed, {"seen"}, {"a part: of no concern"}};
                         }}};
  RunOptions options;
  options.at_once = 3;
  std::ostringstream out;
  run({dir.path()}, runners, options, out);
  CHECK(
      out.str() ==
      "FAIL 1: seen\nSKIP 1, a part: of no concern\n"
      "FAIL 2: seen\nSKIP 2, a part: of no concern\na.json: 0 passed, 2 failed, 0 skipped\n"
      "FAIL 3: seen\nSKIP 3, a part: of no concern\nb.json: 0 passed, 1 failed, 0 skipped\n"
      "0 passed, 3 failed, 0 skipped\n");
}

TEST_CASE("a kind that cannot be prepared is said once and fails the run") {
  const TempDirectory dir;
  dir.write("a.json", file_of("good", {{{"id", "g-1"}}, {{"id", "g-2"}}}));
  std::ostringstream out;
  const Preparations preparations{
      {"good", [](const RunOptions&) { return std::optional<std::string>("no such agent"); }},
      {"bad", [](const RunOptions&) -> std::optional<std::string> {
         throw std::logic_error("nobody asked for this kind");
       }}};
  const Totals totals = run({dir.path()}, kRunners, {}, out, preparations);
  CHECK_FALSE(totals.ok());
  CHECK(out.str() == "FAIL good: no such agent (2 cases not run)\n0 passed, 0 failed, 0 skipped\n");
}

TEST_CASE("a file that cannot be read as cases fails the run") {
  for (const char* text :
       {"{", "{\"schema\": \"other/2\"}", "{\"schema\": \"node-proxy-conformance/1\"}"}) {
    const TempDirectory dir;
    dir.write("a.json", text);
    dir.write("b.json", file_of("good", {{{"id", "g-1"}}}));
    std::ostringstream out;
    const Totals totals = run({dir.path()}, kRunners, {}, out);
    CHECK(totals.bad_files == 1);
    CHECK(totals.passed == 1);
    CHECK_FALSE(totals.ok());
  }
}

TEST_CASE("a path without case files must not look like success") {
  const TempDirectory dir;
  std::ostringstream out;
  CHECK_FALSE(run({dir.path()}, kRunners, {}, out).ok());
  CHECK_FALSE(run({dir.path() / "missing"}, kRunners, {}, out).ok());
}

TEST_CASE("a filter picks by id, name or file, and a list runs nothing") {
  const TempDirectory dir;
  dir.write("one.json", file_of("good", {{{"id", "g-1"}, {"name", "red"}}, {{"id", "g-2"}}}));
  dir.write("two.json", file_of("bad", {{{"id", "b-1"}}}));
  const auto totals = [&](const RunOptions& options) {
    std::ostringstream out;
    return run({dir.path()}, kRunners, options, out);
  };
  const auto matching = [&](const char* text) {
    RunOptions options;
    options.filter = text;
    return totals(options);
  };
  CHECK(matching("g-2").passed == 1);
  CHECK(matching("red").passed == 1);
  CHECK(matching("one.json").passed == 2);
  CHECK(matching("two").failed == 1);
  CHECK_FALSE(matching("nonesuch").ok());
  RunOptions of_kind;
  of_kind.kinds = {"bad"};
  CHECK(totals(of_kind).passed + totals(of_kind).failed == 1);
  RunOptions sample;
  sample.every = 2;
  CHECK(totals(sample).passed + totals(sample).failed == 2);
  RunOptions list;
  list.list = true;
  CHECK(totals(list).failed == 0);
}

TEST_CASE("a need picks the cases that have it, or a flow of which has it") {
  const TempDirectory dir;
  const json flow_with_need = {{"needs", {"sctp"}}};
  dir.write(
      "a.json",
      file_of(
          "good",
          {{{"id", "1"}, {"needs", {"sctp"}}},
           {{"id", "2"}, {"steps", {{{"flows", {json::object(), flow_with_need}}}}}},
           {{"id", "3"}, {"needs", {"raw-packets"}}},
           {{"id", "4"}, {"steps", 4}}}));
  RunOptions options;
  options.needs = "sctp";
  options.list = true;
  std::ostringstream out;
  run({dir.path()}, kRunners, options, out);
  CHECK(out.str() == "1 [good] \n2 [good] \n");
}

TEST_CASE("lists compare as sets, addresses by value, and differences name the place") {
  const auto differences = [](const json& expected, const json& seen, Lists lists) {
    std::vector<std::string> found;
    compare("here", expected, seen, found, lists);
    return found;
  };
  CHECK(differences({"b", "a"}, {"a", "b"}, Lists::AreSets).empty());
  CHECK(differences({"b", "a"}, {"a", "b"}, Lists::AreOrdered).size() == 1);
  CHECK(differences("[fd64:0:0:0::1]:80", "[fd64::1]:80", Lists::AreSets).empty());
  CHECK(differences({true, "any"}, {true, false}, Lists::AreOrdered).empty());
  CHECK(differences("any", {1, 2}, Lists::AreSets).empty());
  CHECK(
      differences({{"a", 1}, {"b", {{"c", 2}}}}, {{"b", {{"c", 3}}}, {"d", 4}}, Lists::AreSets) ==
      std::vector<std::string>{
          "here a: expected 1, seen nothing",
          "here b c: expected 2, seen 3",
          "here d: expected nothing, seen 4"});
}

}  // namespace
}  // namespace shunt::conformance
