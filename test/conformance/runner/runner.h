// Runs the conformance bank (../README.md): case files anywhere below a directory, each case by the
// runner of its kind, in a child process of its own. A runner is keyed on the kind only: files and
// ids may change freely.
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
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shunt::conformance {

enum class Outcome : std::uint8_t { Passed, Failed, Skipped };

struct CaseResult {
  Outcome outcome = Outcome::Passed;
  // Failed: one line for each expectation that was not met: which step, what was expected, what was
  // seen. Skipped: why, one line. Passed: remarks.
  std::vector<std::string> messages;
  // Parts of the case that could not be judged here, "which part: why". Whatever the outcome.
  std::vector<std::string> not_judged = {};
};

struct RunOptions {
  std::string filter;     // only cases whose id, name or file name contains this text
  std::size_t every = 1;  // of those, each so-and-so-many-th
  std::set<std::string, std::less<>> kinds;  // only these kinds; none: all
  std::string needs;              // only what names this need: such cases, and of others such flows
  bool list = false;              // print the cases, run none
  std::string mode = "nftables";  // what the agent under test runs as
  std::string profile = "nft";    // which of the bank's profiles that mode follows
  std::size_t at_once = 1;        // cases that run at the same time
};

// `test_case` is one entry of "cases". A runner may throw what nlohmann::json throws on a malformed
// case: the case has then failed.
using CaseRunner =
    std::function<CaseResult(const nlohmann::json& test_case, const RunOptions& options)>;
using Runners = std::map<std::string, CaseRunner, std::less<>>;  // by kind

// Called once, before the first case of its kind, when there is one to run. What it answers is why
// none of them can: said once, and the run has failed.
using Preparation = std::function<std::optional<std::string>(const RunOptions& options)>;
using Preparations = std::map<std::string, Preparation, std::less<>>;  // by kind

struct Totals {
  std::size_t passed = 0;
  std::size_t failed = 0;
  std::size_t skipped = 0;
  std::size_t bad_files = 0;  // not JSON, or not of the schema
  std::size_t not_begun = 0;  // kinds that could not be prepared, or nothing to run at all
  int interrupted_by = 0;     // a signal; the rest did not run
  bool ok() const { return failed == 0 && bad_files == 0 && not_begun == 0 && interrupted_by == 0; }
};

// Runs every case file at or below `roots`, and prints in order of path and case, however many run
// at once. Cases of a kind without a runner are skipped. JSON files of another schema are bad
// files, except those that carry no "schema" at all.
Totals run(
    const std::vector<std::filesystem::path>& roots,
    const Runners& runners,
    const RunOptions& options,
    std::ostream& out,
    const Preparations& preparations = {});

}  // namespace shunt::conformance
