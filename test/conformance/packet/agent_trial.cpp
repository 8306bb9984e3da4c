#include "packet/agent_trial.h"

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "runner/logs.h"

namespace shunt::conformance::packet {

using nlohmann::json;
namespace fs = std::filesystem;

AgentTrial::~AgentTrial() {
  std::error_code ignored;  // not empty: logs that somebody may want to read
  if (!directory_.empty()) {
    remove_logs_directory(pki());
    fs::remove(directory_, ignored);
  }
}

std::optional<std::string> AgentTrial::run(
    const std::function<json(const std::string& directory)>& trial,
    std::chrono::seconds limit,
    const std::string& mode,
    const std::vector<Child>& others,
    std::vector<ChildEnd>* ends) {
  directory_ = make_logs_directory();
  const std::string logs = directory_ + "/trial";
  std::vector<Child> children{{[&] { return trial(logs).dump(); }, limit, {}}};
  children.insert(children.end(), others.begin(), others.end());
  std::vector<ChildEnd> all(children.size());
  const int signal_number = run_children(
      children, children.size(), [&](std::size_t i, ChildEnd end) { all[i] = std::move(end); });
  if (signal_number != 0) {
    remove_logs_directory(directory_);
    ::raise(signal_number);
  }
  const ChildEnd of_trial = std::move(all.front());
  if (ends != nullptr) {
    ends->assign(std::make_move_iterator(all.begin() + 1), std::make_move_iterator(all.end()));
  }
  if (!of_trial.report) {
    return "the agent could not be tried: " + of_trial.problem;
  }
  const json tried = json::parse(*of_trial.report);
  if (tried.contains("lacking")) {
    lacking_ = tried.at("lacking").get<std::string>();
    return std::nullopt;
  }
  status_socket_ = tried.at("statusSocket");
  if (const json& problems = tried.at("problems"); !problems.empty()) {
    return "the agent does not work in mode " + mode + ": " + problems.front().get<std::string>() +
           "; logs: " + logs;
  }
  fs::rename(logs + "/pki", pki());
  remove_logs_directory(logs);
  return std::nullopt;
}

std::string AgentTrial::make_logs(const std::string& case_id) const {
  std::string logs = directory_ + "/" + case_id;
  fs::create_directories(logs);
  return logs;
}

void AgentTrial::finish_logs(const std::string& logs, CaseResult& result) {
  if (result.outcome == Outcome::Failed) {
    result.messages.push_back("logs: " + logs);
    remove_logs_directory(logs + "/pki");
  } else {
    remove_logs_directory(logs);
  }
}

void AgentTrial::remove_logs() const {
  if (!directory_.empty()) {
    remove_logs_directory(directory_);
  }
}

}  // namespace shunt::conformance::packet
