#include "packet/packet_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <thread>

#include "packet/agent.h"
#include "packet/api_server.h"
#include "packet/flow_runner.h"
#include "packet/packet_lab.h"
#include "runner/compare.h"

namespace shunt::conformance::packet {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kSyncTimeout{15};

struct Tally {
  std::size_t judged = 0;
  std::vector<std::string> problems;
  std::vector<std::string> skipped;

  void skip(std::string line) { skipped.push_back(std::move(line)); }
};

// The lab, the API server and the agent of one case.
class CaseRun {
 public:
  CaseRun(const Case& packet_case, const Bench& bench, const std::string& directory)
      : case_(&packet_case),
        services_(packet_case),
        bench_(&bench),
        lab_(lab_spec_of(packet_case)),
        flows_(lab_, {"node", "outside", "pods"}, bench.patience),
        server_(
            lab_.node(),
            bench.api_server,
            make_pki(bench.pki, directory + "/pki"),
            directory + "/server.log"),
        agent_(lab_.node(), server_, bench.agent, directory, packet_case.settings) {
    std::vector<json> objects = packet_case.nodes;
    objects.push_back(
        {{"apiVersion", "networking.k8s.io/v1"},
         {"kind", "ServiceCIDR"},
         {"metadata", {{"name", "kubernetes"}}},
         {"spec", {{"cidrs", packet_case.settings.service_cidrs}}}});
    version_ = server_.apply(objects);
    for (const net::IpAddress& ip : packet_case.settings.extra_local_addresses) {
      lab_.add_node_address(ip);
    }
  }

  // False when going on makes no sense.
  bool run_step(const Step& step, const std::string& name, Tally& tally) {
    change_objects(step);
    if (step.agent != AgentAction::Down) {
      if (auto problem = agent_.wait_until_applied(version_, bench_->patience * kSyncTimeout)) {
        tally.problems.push_back(name + ": " + *problem);
        return false;
      }
    }
    if (step.remove_rules) {
      remove_rules();
    }
    std::this_thread::sleep_for(step.wait);
    run_flows(step, name, tally);
    return true;
  }

 private:
  void change_objects(const Step& step) {
    const bool stopped =
        step.agent == AgentAction::Down || step.agent == AgentAction::DownThenRestart;
    if (stopped) {
      agent_.stop();
    }
    if (!step.remove.empty()) {
      version_ = server_.remove(step.remove);
    }
    if (!step.apply.empty()) {
      version_ = server_.apply(step.apply);
    }
    if (step.agent == AgentAction::Restart) {
      agent_.stop();
    }
    if (step.agent != AgentAction::Down && agent_.stopped()) {
      agent_.start();  // the first step's start as well
    }
  }

  // Nobody else has rules in this namespace. The next look of an agent in iptables mode is a second
  // away (agent_configuration).
  void remove_rules() {
    lab::Process nft(lab_.node(), {{"nft", "flush", "ruleset"}, {}, {}});
    nft.wait(std::chrono::seconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  }

  void judge_gauges(const Gauges& expected, const std::string& step_name, Tally& tally) const {
    auto reason = bench_->abilities.lacking({"metrics"});
    const auto seen = reason ? std::nullopt : agent_.gauges();
    if (!reason && !seen && !bench_->agent.status_socket) {
      reason = "the agent has neither a status socket nor metrics";
    }
    const std::string name = within(step_name, "services without local endpoints");
    if (reason) {
      tally.skip(name + ": " + *reason);
      return;
    }
    const json wanted{
        {"internal", expected.internal_without_local},
        {"external", expected.external_without_local}};
    ++tally.judged;
    compare(name, wanted, seen.value_or(json()), tally.problems);
  }

  void run_flows(const Step& step, const std::string& step_name, Tally& tally) {
    if (step.gauges) {
      judge_gauges(*step.gauges, step_name, tally);
    }
    for (const Flow& flow : step.flows) {
      if (!is_asked_for(flow)) {
        continue;
      }
      const std::string name = fmt::format(
          "{}, {} {} to {}/{}{}",
          step_name,
          to_string(flow.place),
          net::to_string(flow.from.ip),
          net::to_string(flow.to),
          net::to_string(flow.protocol),
          flow.name.empty() ? "" : " (" + flow.name + ")");
      if (const auto reason = bench_->abilities.lacking(services_.needed_by(flow, step))) {
        tally.skip(name + ": " + *reason);
        continue;
      }
      ++tally.judged;
      if (const auto problem = flows_.run(flow, step.keep_sending, is_followed(step, flow))) {
        tally.problems.push_back(name + ": " + *problem);
      }
    }
  }

  bool is_asked_for(const Flow& flow) const {
    const auto named = [&](const std::vector<std::string>& needs) {
      return std::ranges::find(needs, bench_->needs) != needs.end();
    };
    return bench_->needs.empty() || named(case_->needs) || named(flow.needs);
  }

  bool is_followed(const Step& step, const Flow& flow) const {
    return std::ranges::any_of(step.flows, [&](const Flow& other) {
      return other.stray_segment_after == flow.name && !flow.name.empty();
    });
  }

  const Case* case_;
  ServiceIndex services_;
  const Bench* bench_;
  lab::Lab lab_;
  FlowRunner flows_;
  ApiServer server_;
  Agent agent_;
  std::uint64_t version_ = 0;
};

}  // namespace

std::string make_pki(const std::string& made, std::string directory) {
  if (!made.empty()) {
    std::filesystem::copy(made, directory, std::filesystem::copy_options::recursive);
  }
  return directory;
}

std::optional<std::string> reason_to_skip(const Case& packet_case, const Abilities& abilities) {
  const ServiceIndex services(packet_case);
  std::optional<std::string> reason;
  for (const Step& step : packet_case.steps) {
    for (const Flow& flow : step.flows) {
      reason = abilities.lacking(services.needed_by(flow, step));
      if (!reason) {
        return std::nullopt;
      }
    }
  }
  return reason;
}

CaseResult run_case(const Case& packet_case, const Bench& bench, const std::string& directory) {
  Tally tally;
  try {
    CaseRun run(packet_case, bench, directory);
    std::size_t number = 0;
    for (const Step& step : packet_case.steps) {
      if (!run.run_step(step, fmt::format("step {}", ++number), tally)) {
        break;
      }
    }
  } catch (const std::exception& error) {
    tally.problems.push_back(std::string("the lab failed: ") + error.what());
  }
  CaseResult result;
  result.messages = tally.problems;
  result.not_judged = tally.skipped;
  if (!tally.problems.empty()) {
    result.outcome = Outcome::Failed;
  } else if (tally.judged == 0) {
    result.outcome = Outcome::Skipped;
  }
  return result;
}

}  // namespace shunt::conformance::packet
