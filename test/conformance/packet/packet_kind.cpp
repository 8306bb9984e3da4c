#include "packet/packet_kind.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "netns/ipvs_support.h"
#include "packet/agent_trial.h"
#include "packet/packet_flow.h"
#include "packet/sctp_support.h"

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
  AgentTrial agent_trial;

  std::optional<std::string> prepare(const RunOptions& run_options);
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
  const std::chrono::seconds limit = options.patience * kTrialLimit;
  std::vector<ChildEnd> ends;
  auto problem = agent_trial.run(
      [&](const std::string& logs) { return trial(bench, options.has_status_socket, logs); },
      limit,
      bench.agent.mode,
      {{[] { return why_no_sctp().value_or(""); }, limit, {}}},
      &ends);
  const ChildEnd& of_sctp = ends.front();
  if (const std::string why = of_sctp.report.value_or(of_sctp.problem); !why.empty()) {
    bench.abilities.machine_lacks["sctp"] = why;
  }
  bench.agent.status_socket = agent_trial.status_socket();
  bench.pki = agent_trial.pki();
  return problem;
}

CaseResult PacketFlowKind::State::run(const json& value, const RunOptions& run_options) const {
  const Case packet_case = parse_case(value, run_options.profile);
  if (std::ranges::find(packet_case.modes, run_options.profile) == packet_case.modes.end()) {
    return {Outcome::Skipped, {"not for the profile " + run_options.profile}};
  }
  if (::geteuid() != 0) {
    return {Outcome::Skipped, {"needs root"}};
  }
  if (const auto& lacking = agent_trial.lacking()) {
    return {Outcome::Skipped, {*lacking}};
  }
  if (const auto reason = reason_to_skip(packet_case, bench.abilities)) {
    return {Outcome::Skipped, {*reason}};
  }
  const std::string logs = agent_trial.make_logs(packet_case.id);
  CaseResult result = run_case(packet_case, bench, logs);
  AgentTrial::finish_logs(logs, result);
  return result;
}

PacketFlowOptions default_packet_flow_options() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  PacketFlowOptions options;
  options.agent = here / "kube-shunt";
  options.api_server = here / "test-apiserver";
  return options;
}

PacketFlowKind::PacketFlowKind(PacketFlowOptions options) : state_(std::make_shared<State>()) {
  state_->options = std::move(options);
}

void PacketFlowKind::remove_logs() const { state_->agent_trial.remove_logs(); }

Preparation PacketFlowKind::preparation() const {
  return [state = state_](const RunOptions& options) { return state->prepare(options); };
}

CaseRunner PacketFlowKind::runner() const {
  return [state = state_](const json& value, const RunOptions& options) {
    return state->run(value, options);
  };
}

}  // namespace shunt::conformance::packet
