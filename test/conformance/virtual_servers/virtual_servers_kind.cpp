#include "virtual_servers/virtual_servers_kind.h"

#include <unistd.h>

#include <exception>
#include <filesystem>
#include <utility>

#include "netns/ipvs_support.h"
#include "netns/process.h"
#include "packet/agent_trial.h"
#include "virtual_servers/virtual_servers_run.h"

namespace shunt::conformance::virtual_servers {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::chrono::seconds kTrialLimit{60};

// An agent that cannot live in an empty cluster can in none.
constexpr const char* kTrialCase = R"({
  "id": "trial",
  "settings": {"family": "IPv4", "nodeName": "edge-a",
               "interfaces": {"lo": ["127.0.0.1"], "uplink0": ["10.80.0.10"]}},
  "steps": [{"expect": {"servers": {}}}]})";

std::optional<std::string> why_not_here() {
  if (auto reason = lab::why_no_ipvs()) {
    return reason;
  }
  try {
    lab::run_program({"ipvsadm", "--version"});
  } catch (const std::exception&) {
    return "there is no program ipvsadm";
  }
  return std::nullopt;
}

// What cannot be tried is left out of the answer.
json trial(Bench bench, bool may_have_status_socket, const std::string& directory) {
  if (const auto reason = why_not_here()) {
    return {{"lacking", *reason}};
  }
  bench.agent.status_socket =
      may_have_status_socket && packet::offers_status_socket(bench.agent.words);
  fs::create_directories(directory);
  Findings findings = run_case(parse_case(json::parse(kTrialCase)), bench, directory);
  findings.problems.insert(
      findings.problems.end(), findings.differences.begin(), findings.differences.end());
  return {{"statusSocket", bench.agent.status_socket}, {"problems", findings.problems}};
}

}  // namespace

struct VirtualServersKind::State {
  packet::PacketFlowOptions options;
  Bench bench;
  packet::AgentTrial agent_trial;

  std::optional<std::string> prepare(const RunOptions& run_options);
  CaseResult run(const json& value, const RunOptions& run_options) const;
};

std::optional<std::string> VirtualServersKind::State::prepare(const RunOptions& run_options) {
  if (::geteuid() != 0 || run_options.mode != "ipvs") {
    return std::nullopt;  // each case says so
  }
  bench.agent.words = packet::split_command(options.agent);
  bench.agent.mode = run_options.mode;
  bench.agent.settle = options.settle;
  bench.api_server = options.api_server;
  bench.patience = options.patience;
  auto problem = agent_trial.run(
      [&](const std::string& logs) { return trial(bench, options.has_status_socket, logs); },
      options.patience * kTrialLimit,
      bench.agent.mode);
  bench.agent.status_socket = agent_trial.status_socket();
  bench.pki = agent_trial.pki();
  return problem;
}

CaseResult VirtualServersKind::State::run(const json& value, const RunOptions& run_options) const {
  if (run_options.mode != "ipvs") {
    return {Outcome::Skipped, {"only for --mode ipvs"}};
  }
  if (::geteuid() != 0) {
    return {Outcome::Skipped, {"needs root"}};
  }
  if (const auto& lacking = agent_trial.lacking()) {
    return {Outcome::Skipped, {*lacking}};
  }
  const Case test_case = parse_case(value);
  const std::string logs = agent_trial.make_logs(test_case.id);
  Findings findings = run_case(test_case, bench, logs);
  CaseResult result;
  result.messages = std::move(findings.problems);
  result.not_judged = std::move(findings.not_judged);
  const bool differs = !findings.differences.empty() && !test_case.debatable;
  if (!result.messages.empty() || differs) {
    result.outcome = Outcome::Failed;
  }
  for (const std::string& difference : findings.differences) {
    result.messages.push_back(test_case.debatable ? "debatable: " + difference : difference);
  }
  packet::AgentTrial::finish_logs(logs, result);
  return result;
}

VirtualServersKind::VirtualServersKind(packet::PacketFlowOptions options)
    : state_(std::make_shared<State>()) {
  state_->options = std::move(options);
}

void VirtualServersKind::remove_logs() const { state_->agent_trial.remove_logs(); }

Preparation VirtualServersKind::preparation() const {
  return [state = state_](const RunOptions& options) { return state->prepare(options); };
}

CaseRunner VirtualServersKind::runner() const {
  return [state = state_](const json& value, const RunOptions& options) {
    return state->run(value, options);
  };
}

}  // namespace shunt::conformance::virtual_servers
