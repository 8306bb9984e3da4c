// Runs the conformance bank (../README.md): case files anywhere below a directory, each case by the
// runner of its kind. A runner is keyed on the kind only: files and ids may change freely.
//
// To add a kind: write a CaseRunner, and give it to the Runners that main.cpp builds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shunt::conformance {

enum class Outcome : std::uint8_t { Passed, Failed, Skipped };

struct CaseResult {
  Outcome outcome = Outcome::Passed;
  // Failed: one line for each expectation that was not met: which step, what was expected, what was
  // seen. Skipped: why, one line. Passed: remarks, as the parts of a case that could not run.
  std::vector<std::string> messages;
};

struct RunOptions {
  std::string filter;           // only cases whose id, name or file name contains this text
  bool list = false;            // print the cases, run none
  std::string profile = "nft";  // which of the bank's profiles the agent under test follows
};

// `test_case` is one entry of "cases". A runner may throw what nlohmann::json throws on a malformed
// case: the case has then failed.
using CaseRunner =
    std::function<CaseResult(const nlohmann::json& test_case, const RunOptions& options)>;
using Runners = std::map<std::string, CaseRunner, std::less<>>;  // by kind

struct Totals {
  std::size_t passed = 0;
  std::size_t failed = 0;
  std::size_t skipped = 0;
  std::size_t bad_files = 0;  // not JSON, or not of the schema
  bool ok() const { return failed == 0 && bad_files == 0; }
};

// Runs every case file at or below `roots`, in order of path. Cases of a kind without a runner are
// skipped. JSON files of another schema are bad files, except those that carry no "schema" at all.
Totals run(
    const std::vector<std::filesystem::path>& roots,
    const Runners& runners,
    const RunOptions& options,
    std::ostream& out);

}  // namespace shunt::conformance
