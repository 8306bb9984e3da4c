#include "packet/packet_flow.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <thread>

#include "packet/agent.h"
#include "packet/api_server.h"
#include "packet/flow_runner.h"
#include "packet/packet_lab.h"

namespace shunt::conformance::packet {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kSyncTimeout{15};

struct Tally {
  std::size_t judged = 0;
  std::vector<std::string> problems;
  std::vector<std::string> skipped;

  void skip(std::string line) { skipped.push_back("SKIP " + std::move(line)); }
};

// The lab, the API server and the agent of one case.
class CaseRun {
 public:
  CaseRun(const Case& packet_case, const PacketFlowOptions& options, const std::string& directory)
      : case_(&packet_case),
        services_(packet_case),
        options_(&options),
        lab_(lab_spec_of(packet_case)),
        flows_(lab_, {"node", "outside", "pods"}),
        server_(
            lab_.node(), options.api_server, options.directory + "/pki", directory + "/server.log"),
        agent_(lab_.node(), options.agent, server_.kubeconfig(), directory, packet_case.settings) {
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
      if (auto problem = agent_.wait_until_applied(version_, kSyncTimeout)) {
        tally.problems.push_back(name + ": " + *problem);
        return false;
      }
    }
    if (step.remove_rules && has("self-heal")) {
      remove_rules();
    }
    std::this_thread::sleep_for(step.wait);
    run_flows(step, name, tally);
    return true;
  }

 private:
  bool has(const std::string& capability) const {
    return options_->capabilities.contains(capability);
  }

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

  void remove_rules() {
    for (const char* const family : {"ip", "ip6"}) {
      lab::Process nft(lab_.node(), {{"nft", "delete", "table", family, "kube-shunt"}, {}, {}});
      nft.wait(std::chrono::seconds(5));
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }

  void run_flows(const Step& step, const std::string& step_name, Tally& tally) {
    if (step.judges_gauges) {
      tally.skip(step_name + ": needs metrics: the gauges are not read by this runner yet");
    }
    for (const Flow& flow : step.flows) {
      const std::string name = fmt::format(
          "{}, {} to {}/{}{}",
          step_name,
          net::to_string(flow.from.ip),
          net::to_string(flow.to),
          net::to_string(flow.protocol),
          flow.name.empty() ? "" : " (" + flow.name + ")");
      Capabilities needed = services_.needed_by(flow, step);
      if (keeps_sending()) {
        needed.insert("stale-udp");
      }
      std::erase_if(needed, [&](const std::string& word) { return has(word); });
      if (!needed.empty()) {
        tally.skip(name + ": needs " + *needed.begin());
        continue;
      }
      ++tally.judged;
      if (const auto problem = flows_.run(flow, step.keep_sending, is_followed(step, flow))) {
        tally.problems.push_back(name + ": " + *problem);
      }
    }
  }

  bool keeps_sending() const {
    return std::ranges::any_of(case_->steps, [](const Step& step) { return step.keep_sending; });
  }

  bool is_followed(const Step& step, const Flow& flow) const {
    return std::ranges::any_of(step.flows, [&](const Flow& other) {
      return other.stray_segment_after == flow.name && !flow.name.empty();
    });
  }

  const Case* case_;
  ServiceIndex services_;
  const PacketFlowOptions* options_;
  lab::Lab lab_;
  FlowRunner flows_;
  ApiServer server_;
  Agent agent_;
  std::uint64_t version_ = 0;
};

// Skipped before anything is built: no flow of the case can be judged.
std::optional<std::string> reason_to_skip(
    const Case& packet_case, const PacketFlowOptions& options, const std::string& profile) {
  if (std::ranges::find(packet_case.modes, profile) == packet_case.modes.end()) {
    return "not for the profile " + profile;
  }
  for (const std::string& need : packet_case.needs) {
    const bool lab_has_it = need == "sctp" || need == "raw-packets";
    if (!lab_has_it && !options.capabilities.contains(need)) {
      return "needs " + need;
    }
  }
  const ServiceIndex services(packet_case);
  std::string missing;
  for (const Step& step : packet_case.steps) {
    for (const Flow& flow : step.flows) {
      const Capabilities needed = services.needed_by(flow, step);
      if (std::ranges::includes(options.capabilities, needed)) {
        return std::nullopt;
      }
      missing = *needed.begin();
      for (const std::string& word : needed) {
        missing = options.capabilities.contains(word) ? missing : word;
      }
    }
  }
  return "needs " + missing;
}

CaseResult run_case(
    const Case& packet_case, const PacketFlowOptions& options, const std::string& directory) {
  Tally tally;
  try {
    CaseRun run(packet_case, options, directory);
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
  result.messages = tally.skipped;
  if (!tally.problems.empty()) {
    result.outcome = Outcome::Failed;
    result.messages = tally.problems;
    result.messages.push_back("logs: " + directory);
  } else if (tally.judged == 0) {
    result.outcome = Outcome::Skipped;
  }
  return result;
}

}  // namespace

PacketFlowOptions default_packet_flow_options() {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  PacketFlowOptions options;
  options.agent = here / "kube-shunt";
  options.api_server = here / "test-apiserver";
  options.directory =
      std::filesystem::temp_directory_path() / ("shunt-conformance-" + std::to_string(::getpid()));
  return options;
}

CaseRunner packet_flow_runner(PacketFlowOptions options) {
  return [options = std::move(options)](const json& value, const RunOptions& run_options) {
    const Case packet_case = parse_case(value, run_options.profile);
    if (const auto reason = reason_to_skip(packet_case, options, run_options.profile)) {
      return CaseResult{Outcome::Skipped, {*reason}};
    }
    if (::geteuid() != 0) {
      return CaseResult{Outcome::Skipped, {"needs root"}};
    }
    const std::string directory = options.directory + "/" + packet_case.id;
    std::filesystem::create_directories(directory);
    CaseResult result = run_case(packet_case, options, directory);
    if (result.outcome != Outcome::Failed) {
      std::filesystem::remove_all(directory);
    }
    return result;
  };
}

}  // namespace shunt::conformance::packet
