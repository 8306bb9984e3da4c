#include "packet/agent.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include "netns/agent_status.h"
#include "netns/plain_http.h"
#include "packet/gauges.h"

namespace shunt::conformance::packet {
namespace {

using nlohmann::json;

std::string last_line(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    last = line.empty() ? last : line;
  }
  return last;
}

}  // namespace

Agent::Agent(
    const lab::Netns& where,
    const ApiServer& server,
    AgentCommand command,
    std::string directory,
    const Settings& settings)
    : where_(&where),
      command_(std::move(command)),
      files_{directory + "/config.json", server.kubeconfig(), directory + "/status"},
      directory_(std::move(directory)),
      node_name_(settings.node_name) {
  std::ofstream(files_.config)
      << agent_configuration(settings, command_.mode, files_.kubeconfig).dump(2) << "\n";
  if (!command_.status_socket) {
    settling_.emplace(where, server, command_.settle);
  }
}

void Agent::start() {
  if (settling_) {
    settling_->agent_starts();
  }
  process_.emplace(
      *where_, lab::ProcessSpec{agent_arguments(command_, files_, node_name_), {}, log_file()});
}

void Agent::stop() {
  if (process_) {
    process_->terminate();
    process_.reset();
  }
}

std::optional<json> Agent::gauges() const {
  if (settling_) {
    const auto metrics = net::parse_socket_address(kMetricsAddress).value();
    return gauges_in_metrics(lab::plain_http(*where_, metrics, "GET", "/metrics").body);
  }
  const auto told = status();
  return told && told->contains("servicesWithoutLocalEndpoints")
             ? std::optional(told->at("servicesWithoutLocalEndpoints"))
             : std::nullopt;
}

std::optional<json> Agent::status() const { return lab::agent_status(files_.status_socket); }

std::optional<std::string> Agent::problem_of_process() {
  if (process_ && process_->running()) {
    return std::nullopt;
  }
  const int status = process_ ? process_->wait(std::chrono::milliseconds(0)).value_or(0) : 0;
  return fmt::format(
      "the agent has ended ({}), its last words: {}",
      WIFSIGNALED(status) ? ::strsignal(WTERMSIG(status))
                          : "exit status " + std::to_string(WEXITSTATUS(status)),
      last_line(log_file()));
}

std::optional<std::string> Agent::wait_until_applied(
    std::uint64_t version, std::chrono::milliseconds timeout) {
  if (settling_) {
    return settling_->wait(timeout, [this] { return problem_of_process(); });
  }
  using namespace std::chrono_literals;
  const auto begin = std::chrono::steady_clock::now();
  const auto deadline = begin + timeout;
  std::optional<json> last;
  while (std::chrono::steady_clock::now() < deadline) {
    if (auto problem = problem_of_process()) {
      return problem;
    }
    last = status();
    if (last && lab::has_applied(*last, version)) {
      return std::nullopt;
    }
    // Its answer costs the agent time that it needs for what we wait for: the longer that takes,
    // the less we ask.
    const auto waited = std::chrono::steady_clock::now() - begin;
    std::this_thread::sleep_for(
        std::clamp<std::chrono::steady_clock::duration>(waited / 8, 2ms, 100ms));
  }
  return "the agent has not applied version " + std::to_string(version) +
         " in time: its status is " + (last ? last->dump() : "unknown");
}

}  // namespace shunt::conformance::packet
