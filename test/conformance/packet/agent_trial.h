// What every kind has whose cases run an agent: a directory for their logs, of which those of
// failed cases stay, and a trial of the agent before the first of them.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runner/children.h"
#include "runner/runner.h"

namespace shunt::conformance::packet {

class AgentTrial {
 public:
  AgentTrial() = default;
  AgentTrial(const AgentTrial&) = delete;
  AgentTrial& operator=(const AgentTrial&) = delete;
  ~AgentTrial();

  // Runs `trial` in a child process, as the cases do, since the first lab of a process changes it.
  // It gets a directory for its logs and answers {"lacking": why} or {"statusSocket", "problems"}.
  // `others` run beside it and answer in `ends`. Returns why no case can be run, or nothing.
  std::optional<std::string> run(
      const std::function<nlohmann::json(const std::string& directory)>& trial,
      std::chrono::seconds limit,
      const std::string& mode,
      const std::vector<Child>& others = {},
      std::vector<ChildEnd>* ends = nullptr);

  // What the trial told.
  const std::optional<std::string>& lacking() const { return lacking_; }  // of this machine
  bool status_socket() const { return status_socket_; }
  // Keys that every API server may use: four pairs less to make a case.
  std::string pki() const { return directory_ + "/pki"; }

  // A directory for the logs of a case, and what becomes of it: its place is told when they stay.
  std::string make_logs(const std::string& case_id) const;
  static void finish_logs(const std::string& logs, CaseResult& result);

  // Those of failed cases as well: for a run that was given up.
  void remove_logs() const;

 private:
  std::string directory_;
  std::optional<std::string> lacking_;
  bool status_socket_ = false;
};

}  // namespace shunt::conformance::packet
