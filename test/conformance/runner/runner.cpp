#include "runner/runner.h"

#include <algorithm>
#include <iterator>
#include <ostream>

#include "runner/case_file.h"
#include "runner/children.h"

namespace shunt::conformance {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kCaseLimit{300};  // beside what the case waits on purpose

// A case that was chosen, in the order in which results are printed.
struct Chosen {
  const CaseFile* file = nullptr;
  const json* test_case = nullptr;
  std::optional<CaseResult> result;
};

std::vector<Chosen> choose(const std::vector<CaseFile>& files, const RunOptions& options) {
  std::vector<Chosen> chosen;
  std::size_t number = 0;
  for (const CaseFile& file : files) {
    if (!options.kinds.empty() && !options.kinds.contains(file.kind)) {
      continue;
    }
    for (const json& test_case : file.cases) {
      const bool needed = options.needs.empty() || mentions_need(test_case, options.needs);
      if (needed && matches(options.filter, file, test_case) && number++ % options.every == 0) {
        chosen.push_back({&file, &test_case, {}});
      }
    }
  }
  return chosen;
}

std::string id_of(const json& test_case) { return text_or(test_case, "id", "(no id)"); }

// A result on its way from the child that ran the case.
std::string to_text(const CaseResult& result) {
  const json value{
      {"outcome", result.outcome}, {"messages", result.messages}, {"notJudged", result.not_judged}};
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

CaseResult from_text(const std::string& text) {
  const json value = json::parse(text);
  CaseResult result;
  value.at("outcome").get_to(result.outcome);
  value.at("messages").get_to(result.messages);
  value.at("notJudged").get_to(result.not_judged);
  return result;
}

CaseResult result_of(const ChildEnd& end) {
  return end.report ? from_text(*end.report)
                    : CaseResult{Outcome::Failed, {"the case could not be run: " + end.problem}};
}

void print(const Chosen& chosen, std::ostream& out) {
  const std::string id = id_of(*chosen.test_case);
  const CaseResult& result = *chosen.result;
  const char* word = result.outcome == Outcome::Failed    ? "FAIL "
                     : result.outcome == Outcome::Skipped ? "SKIP "
                                                          : "NOTE ";
  for (const std::string& message : result.messages) {
    out << word << id << ": " << message << '\n';
  }
  for (const std::string& part : result.not_judged) {
    out << "SKIP " << id << ", " << part << '\n';
  }
  if (result.outcome != Outcome::Passed && result.messages.empty() && result.not_judged.empty()) {
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

// Prints what is known, in order, as soon as nothing before it is missing.
class Printer {
 public:
  Printer(const std::vector<Chosen>& chosen, std::ostream& out) : chosen_(&chosen), out_(&out) {}

  void advance() {
    for (; next_ < chosen_->size() && (*chosen_)[next_].result; ++next_) {
      const Chosen& chosen = (*chosen_)[next_];
      print(chosen, *out_);
      count(chosen.result->outcome, of_file_);
      const bool last = next_ + 1 == chosen_->size() || (*chosen_)[next_ + 1].file != chosen.file;
      if (last) {
        *out_ << chosen.file->path.filename().string() << ": ";
        summarise(of_file_, *out_);
        *out_ << '\n';
        of_file_ = {};
      }
      out_->flush();
    }
  }

 private:
  const std::vector<Chosen>* chosen_;
  std::ostream* out_;
  std::size_t next_ = 0;
  Totals of_file_;
};

// Drops the cases of kinds that cannot run at all.
void prepare(
    std::vector<Chosen>& chosen,
    const Preparations& preparations,
    const RunOptions& options,
    Totals& totals,
    std::ostream& out) {
  for (const auto& entry : preparations) {  // clang 14: a lambda captures no structured binding
    const std::string& kind = entry.first;
    const auto of_kind = [&](const Chosen& c) { return c.file->kind == kind; };
    if (std::ranges::none_of(chosen, of_kind)) {
      continue;
    }
    if (const auto problem = entry.second(options)) {
      const auto dropped = std::erase_if(chosen, of_kind);
      out << "FAIL " << kind << ": " << *problem << " (" << dropped << " cases not run)\n";
      ++totals.not_begun;
    }
  }
}

void run_chosen(
    std::vector<Chosen>& chosen,
    const Runners& runners,
    const RunOptions& options,
    Totals& totals,
    std::ostream& out) {
  Printer printer(chosen, out);
  std::vector<Child> children;
  std::vector<Chosen*> with_child;
  for (Chosen& c : chosen) {
    const auto runner = runners.find(c.file->kind);
    if (runner == runners.end()) {
      c.result = CaseResult{Outcome::Skipped, {"kind not built yet"}};
      continue;
    }
    const std::chrono::seconds waits = waiting_time(*c.test_case);
    const auto work = [&options, &run_case = runner->second, test_case = c.test_case] {
      return to_text(run_case(*test_case, options));
    };
    children.push_back({work, waits + kCaseLimit, waits});
    with_child.push_back(&c);
  }
  printer.advance();
  totals.interrupted_by =
      run_children(children, options.at_once, [&](std::size_t index, const ChildEnd& end) {
        with_child[index]->result = result_of(end);
        printer.advance();
      });
  for (const Chosen& c : chosen) {
    if (c.result) {
      count(c.result->outcome, totals);
    }
  }
}

void print_list(const std::vector<Chosen>& chosen, std::ostream& out) {
  for (const Chosen& c : chosen) {
    out << id_of(*c.test_case) << " [" << c.file->kind << "] " << text_or(*c.test_case, "name", "")
        << '\n';
  }
}

}  // namespace

Totals run(
    const std::vector<std::filesystem::path>& roots,
    const Runners& runners,
    const RunOptions& options,
    std::ostream& out,
    const Preparations& preparations) {
  Totals totals;
  const std::vector<CaseFile> files = read_case_files(roots, totals.bad_files, out);
  if (files.empty() && totals.bad_files == 0) {
    // A wrong path must not look like success.
    out << "FAIL no case files found\n";
    ++totals.bad_files;
  }
  std::vector<Chosen> chosen = choose(files, options);
  if (options.list) {
    print_list(chosen, out);
    return totals;
  }
  if (chosen.empty() && !files.empty()) {
    out << "FAIL no case was asked for\n";  // a wrong filter must not look like success either
    ++totals.not_begun;
  }
  prepare(chosen, preparations, options, totals, out);
  run_chosen(chosen, runners, options, totals, out);
  if (totals.bad_files > 0) {
    out << totals.bad_files << " bad file(s) or path(s)\n";
  }
  if (totals.interrupted_by != 0) {
    out << "interrupted\n";
  }
  summarise(totals, out);
  out << '\n';
  return totals;
}

}  // namespace shunt::conformance
