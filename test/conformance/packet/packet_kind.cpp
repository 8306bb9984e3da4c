#include "packet/packet_kind.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "netns/ipvs_support.h"
#include "packet/packet_flow.h"
#include "packet/sctp_support.h"
#include "runner/children.h"
#include "runner/logs.h"

namespace shunt::conformance::packet {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::chrono::seconds kTrialLimit{60};

// The smallest cluster: if the agent cannot live in this one, it can in none.
constexpr const char* kTrialCase = R"({
  "id": "trial",
  "settings": {"nodeName": "edge-a", "families": ["IPv4", "IPv6"],
               "nodeAddresses": ["10.80.0.10", "fd80::10"],
               "serviceCIDRs": ["10.112.0.0/16", "fdc0::/112"],
               "detectLocal": {"mode": "ClusterCIDR", "cidrs": ["10.64.0.0/14", "fd64::/48"]},
               "podLinks": {"style": "veth", "prefix": "pod"}},
  "nodes": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "edge-a"},
             "spec": {"podCIDR": "10.64.0.0/24", "podCIDRs": ["10.64.0.0/24", "fd64::/64"]},
             "status": {"addresses": [{"type": "InternalIP", "address": "10.80.0.10"}]}}],
  "steps": [{}]})";

// Runs in a child process, as the cases do: the first lab of a process changes it.
json trial(Bench bench, bool may_have_status_socket, const std::string& directory) {
  if (const auto reason = bench.agent.mode == "ipvs" ? lab::why_no_ipvs() : std::nullopt) {
    return {{"lacking", *reason}};
  }
  bench.agent.status_socket = may_have_status_socket && offers_status_socket(bench.agent.words);
  fs::create_directories(directory);
  const CaseResult result = run_case(parse_case(json::parse(kTrialCase), ""), bench, directory);
  return {{"statusSocket", bench.agent.status_socket}, {"problems", result.messages}};
}

}  // namespace

struct PacketFlowKind::State {
  PacketFlowOptions options;
  Bench bench;
  std::string directory;
  std::optional<std::string> lacking;  // of this machine, without which the mode makes no sense

  std::optional<std::string> prepare(const RunOptions& run_options);
  std::optional<std::string> learn(const ChildEnd& of_agent, const ChildEnd& of_sctp);
  CaseResult run(const json& value, const RunOptions& run_options) const;
};

std::optional<std::string> PacketFlowKind::State::prepare(const RunOptions& run_options) {
  if (::geteuid() != 0) {
    return std::nullopt;  // each case says so
  }
  bench.agent.words = split_command(options.agent);
  bench.agent.mode = run_options.mode;
  bench.agent.settle = options.settle;
  bench.api_server = options.api_server;
  bench.abilities.agent = options.capabilities;
  bench.patience = options.patience;
  bench.needs = run_options.needs;
  directory = make_logs_directory();
  const std::vector<Child> children{
      {[&] { return trial(bench, options.has_status_socket, directory + "/trial").dump(); },
       options.patience * kTrialLimit,
       {}},
      {[] { return why_no_sctp().value_or(""); }, options.patience * kTrialLimit, {}}};
  std::vector<ChildEnd> ends(children.size());
  const int signal_number = run_children(
      children, children.size(), [&](std::size_t i, ChildEnd end) { ends[i] = std::move(end); });
  if (signal_number != 0) {
    remove_logs_directory(directory);
    ::raise(signal_number);
  }
  return learn(ends[0], ends[1]);
}

std::optional<std::string> PacketFlowKind::State::learn(
    const ChildEnd& of_agent, const ChildEnd& of_sctp) {
  if (const std::string why = of_sctp.report.value_or(of_sctp.problem); !why.empty()) {
    bench.abilities.machine_lacks["sctp"] = why;
  }
  if (!of_agent.report) {
    return "the agent could not be tried: " + of_agent.problem;
  }
  const json tried = json::parse(*of_agent.report);
  if (tried.contains("lacking")) {
    lacking = tried.at("lacking").get<std::string>();
    return std::nullopt;
  }
  bench.agent.status_socket = tried.at("statusSocket");
  if (const json& problems = tried.at("problems"); !problems.empty()) {
    return "the agent does not work in mode " + bench.agent.mode + ": " +
           problems.front().get<std::string>() + "; logs: " + directory + "/trial";
  }
  // Four pairs of keys less to make a case.
  fs::rename(directory + "/trial/pki", directory + "/pki");
  bench.pki = directory + "/pki";
  remove_logs_directory(directory + "/trial");
  return std::nullopt;
}

CaseResult PacketFlowKind::State::run(const json& value, const RunOptions& run_options) const {
  const Case packet_case = parse_case(value, run_options.profile);
  if (std::ranges::find(packet_case.modes, run_options.profile) == packet_case.modes.end()) {
    return {Outcome::Skipped, {"not for the profile " + run_options.profile}};
  }
  if (::geteuid() != 0) {
    return {Outcome::Skipped, {"needs root"}};
  }
  if (lacking) {
    return {Outcome::Skipped, {*lacking}};
  }
  if (const auto reason = reason_to_skip(packet_case, bench.abilities)) {
    return {Outcome::Skipped, {*reason}};
  }
  const std::string logs = directory + "/" + packet_case.id;
  fs::create_directories(logs);
  CaseResult result = run_case(packet_case, bench, logs);
  if (result.outcome == Outcome::Failed) {
    result.messages.push_back("logs: " + logs);
    remove_logs_directory(logs + "/pki");
  } else {
    remove_logs_directory(logs);
  }
  return result;
}

PacketFlowOptions default_packet_flow_options() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  PacketFlowOptions options;
  options.agent = here / "kube-shunt";
  options.api_server = here / "test-apiserver";
  return options;
}

PacketFlowKind::PacketFlowKind(PacketFlowOptions options)
    : state_(std::make_shared<State>(State{std::move(options), {}, {}, {}})) {}

PacketFlowKind::~PacketFlowKind() {
  std::error_code ignored;  // not empty: logs that somebody may want to read
  if (!state_->directory.empty()) {
    remove_logs_directory(state_->directory + "/pki");
    fs::remove(state_->directory, ignored);
  }
}

void PacketFlowKind::remove_logs() const {
  if (!state_->directory.empty()) {
    remove_logs_directory(state_->directory);
  }
}

Preparation PacketFlowKind::preparation() const {
  return [state = state_](const RunOptions& options) { return state->prepare(options); };
}

CaseRunner PacketFlowKind::runner() const {
  return [state = state_](const json& value, const RunOptions& options) {
    return state->run(value, options);
  };
}

}  // namespace shunt::conformance::packet
