#include "runner/runner.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <ostream>
#include <set>
#include <string_view>

namespace shunt::conformance {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::string_view kSchema = "node-proxy-conformance/1";

// Every *.json file at or below the roots, once; what does not exist is reported.
std::vector<fs::path> case_files(
    const std::vector<fs::path>& roots, Totals& totals, std::ostream& out) {
  std::set<fs::path> files;
  for (const fs::path& root : roots) {
    std::error_code error;
    if (fs::is_regular_file(root, error)) {
      files.insert(root);
      continue;
    }
    fs::recursive_directory_iterator it(root, error);
    for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      if (it->path().extension() == ".json" && it->is_regular_file(error)) {
        files.insert(it->path());
      }
    }
    if (error) {
      out << "FAIL " << root.string() << ": " << error.message() << '\n';
      ++totals.bad_files;
    }
  }
  return {files.begin(), files.end()};
}

std::string text_or(const json& object, const char* key, std::string otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::move(otherwise);
}

// Nothing when the file is of no concern; an error is printed and counted.
std::optional<json> read_case_file(const fs::path& path, Totals& totals, std::ostream& out) {
  const auto bad = [&](std::string_view why) {
    out << "FAIL " << path.string() << ": " << why << '\n';
    ++totals.bad_files;
    return std::nullopt;
  };
  std::ifstream in(path);
  json file = json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (file.is_discarded()) {
    return bad("not JSON");
  }
  if (!file.is_object() || !file.contains("schema")) {
    return std::nullopt;
  }
  if (file["schema"] != kSchema) {
    return bad("another schema");
  }
  if (!file.contains("kind") || !file["kind"].is_string()) {
    return bad("no kind");
  }
  if (!file.contains("cases") || !file["cases"].is_array()) {
    return bad("no cases");
  }
  return file;
}

bool matches(const std::string& filter, const fs::path& path, const json& c) {
  const auto has = [&](const std::string& text) { return text.find(filter) != std::string::npos; };
  return filter.empty() || has(path.filename().string()) || has(text_or(c, "id", "")) ||
         has(text_or(c, "name", ""));
}

CaseResult run_case(
    const Runners& runners, const std::string& kind, const json& c, const RunOptions& options) {
  const auto runner = runners.find(kind);
  if (runner == runners.end()) {
    return {Outcome::Skipped, {"kind not built yet"}};
  }
  try {
    return runner->second(c, options);
  } catch (const std::exception& e) {
    return {Outcome::Failed, {std::string("the case could not be run: ") + e.what()}};
  }
}

void print(const std::string& id, const CaseResult& result, std::ostream& out) {
  const char* word = result.outcome == Outcome::Failed    ? "FAIL "
                     : result.outcome == Outcome::Skipped ? "SKIP "
                                                          : "NOTE ";
  for (const std::string& message : result.messages) {
    out << word << id << ": " << message << '\n';
  }
  if (result.messages.empty() && result.outcome != Outcome::Passed) {
    out << word << id << ": no reason given\n";
  }
}

void count(Outcome outcome, Totals& totals) {
  switch (outcome) {
    case Outcome::Passed:
      ++totals.passed;
      break;
    case Outcome::Failed:
      ++totals.failed;
      break;
    case Outcome::Skipped:
      ++totals.skipped;
      break;
  }
}

void summarise(const Totals& totals, std::ostream& out) {
  out << totals.passed << " passed, " << totals.failed << " failed, " << totals.skipped
      << " skipped";
}

void run_file(
    const fs::path& path,
    const json& file,
    const Runners& runners,
    const RunOptions& options,
    Totals& totals,
    std::ostream& out) {
  const std::string kind = file["kind"];
  Totals of_file;
  bool any = false;
  for (const json& c : file["cases"]) {
    if (!matches(options.filter, path, c)) {
      continue;
    }
    any = true;
    const std::string id = text_or(c, "id", "(no id)");
    if (options.list) {
      out << id << " [" << kind << "] " << text_or(c, "name", "") << '\n';
      continue;
    }
    const CaseResult result = run_case(runners, kind, c, options);
    print(id, result, out);
    count(result.outcome, of_file);
  }
  if (!any || options.list) {
    return;
  }
  out << path.filename().string() << ": ";
  summarise(of_file, out);
  out << '\n';
  totals.passed += of_file.passed;
  totals.failed += of_file.failed;
  totals.skipped += of_file.skipped;
}

}  // namespace

Totals run(
    const std::vector<fs::path>& roots,
    const Runners& runners,
    const RunOptions& options,
    std::ostream& out) {
  Totals totals;
  bool any_file = false;
  for (const fs::path& path : case_files(roots, totals, out)) {
    if (const auto file = read_case_file(path, totals, out)) {
      any_file = true;
      run_file(path, *file, runners, options, totals, out);
    }
  }
  if (!any_file && totals.bad_files == 0) {
    // A wrong path must not look like success.
    out << "FAIL no case files found\n";
    ++totals.bad_files;
  }
  if (!options.list) {
    if (totals.bad_files > 0) {
      out << totals.bad_files << " bad file(s) or path(s)\n";
    }
    summarise(totals, out);
    out << '\n';
  }
  return totals;
}

}  // namespace shunt::conformance
