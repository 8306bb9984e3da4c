#include "runner/case_file.h"

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

void report(const fs::path& path, std::string_view why, std::size_t& bad_files, std::ostream& out) {
  out << "FAIL " << path.string() << ": " << why << '\n';
  ++bad_files;
}

// Every *.json file at or below the roots, once; what does not exist is reported.
std::set<fs::path> json_files(
    const std::vector<fs::path>& roots, std::size_t& bad_files, std::ostream& out) {
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
      report(root, error.message(), bad_files, out);
    }
  }
  return files;
}

std::optional<CaseFile> read_case_file(
    const fs::path& path, std::size_t& bad_files, std::ostream& out) {
  std::ifstream in(path);
  json file = json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (file.is_discarded()) {
    report(path, "not JSON", bad_files, out);
    return std::nullopt;
  }
  if (!file.is_object() || !file.contains("schema")) {
    return std::nullopt;
  }
  std::string_view problem;
  if (file["schema"] != kSchema) {
    problem = "another schema";
  } else if (!file.contains("kind") || !file["kind"].is_string()) {
    problem = "no kind";
  } else if (!file.contains("cases") || !file["cases"].is_array()) {
    problem = "no cases";
  }
  if (!problem.empty()) {
    report(path, problem, bad_files, out);
    return std::nullopt;
  }
  return CaseFile{path, file["kind"], file["cases"].get<std::vector<json>>()};
}

const json& list_at(const json& object, const char* key) {
  static const json nothing = json::array();
  if (!object.is_object()) {
    return nothing;
  }
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : nothing;
}

bool lists_need(const json& object, const std::string& need) {
  const json& needs = list_at(object, "needs");
  return std::find(needs.begin(), needs.end(), need) != needs.end();
}

int number_at(const json& object, const char* key, int otherwise) {
  if (!object.is_object()) {
    return otherwise;
  }
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int>() : otherwise;
}

}  // namespace

std::vector<CaseFile> read_case_files(
    const std::vector<fs::path>& roots, std::size_t& bad_files, std::ostream& out) {
  std::vector<CaseFile> files;
  for (const fs::path& path : json_files(roots, bad_files, out)) {
    if (auto file = read_case_file(path, bad_files, out)) {
      files.push_back(std::move(*file));
    }
  }
  return files;
}

std::string text_or(const json& object, const char* key, std::string otherwise) {
  if (!object.is_object()) {
    return otherwise;
  }
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::move(otherwise);
}

bool matches(const std::string& filter, const CaseFile& file, const json& test_case) {
  const auto has = [&](const std::string& text) { return text.find(filter) != std::string::npos; };
  return filter.empty() || has(file.path.filename().string()) ||
         has(text_or(test_case, "id", "")) || has(text_or(test_case, "name", ""));
}

bool mentions_need(const json& test_case, const std::string& need) {
  if (lists_need(test_case, need)) {
    return true;
  }
  return std::ranges::any_of(list_at(test_case, "steps"), [&](const json& step) {
    return std::ranges::any_of(
        list_at(step, "flows"), [&](const json& flow) { return lists_need(flow, need); });
  });
}

std::chrono::seconds waiting_time(const json& test_case) {
  int seconds = 0;
  for (const json& step : list_at(test_case, "steps")) {
    seconds += number_at(step, "waitSeconds", 0);
    for (const json& flow : list_at(step, "flows")) {
      seconds += number_at(flow, "gapSeconds", 0) * number_at(flow, "count", 1);
    }
  }
  return std::chrono::seconds(seconds);
}

}  // namespace shunt::conformance
