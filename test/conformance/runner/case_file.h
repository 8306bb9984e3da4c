// The bank as files: which cases there are, and which of them a run is about.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shunt::conformance {

struct CaseFile {
  std::filesystem::path path;
  std::string kind;
  std::vector<nlohmann::json> cases;
};

// Every case file at or below `roots`, in order of path. JSON files without a "schema" are somebody
// else's; what cannot be read as cases is printed and counted.
std::vector<CaseFile> read_case_files(
    const std::vector<std::filesystem::path>& roots, std::size_t& bad_files, std::ostream& out);

// The member as text, or `otherwise` when it is none.
std::string text_or(const nlohmann::json& object, const char* key, std::string otherwise);

// The id, the name or the file's name contains the text.
bool matches(const std::string& filter, const CaseFile& file, const nlohmann::json& test_case);

// The case, or one of its flows, names the need.
bool mentions_need(const nlohmann::json& test_case, const std::string& need);

// How long the case waits on purpose, at least: steps that wait, pauses between connections.
std::chrono::seconds waiting_time(const nlohmann::json& test_case);

}  // namespace shunt::conformance
