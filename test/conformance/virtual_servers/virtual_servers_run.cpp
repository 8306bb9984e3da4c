#include "virtual_servers/virtual_servers_run.h"

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <thread>

#include "packet/agent.h"
#include "packet/api_server.h"
#include "packet/packet_flow.h"
#include "runner/compare.h"
#include "virtual_servers/connections.h"
#include "virtual_servers/node.h"

namespace shunt::conformance::virtual_servers {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kSyncTimeout{15};
// Real servers go when the kernel has forgotten their connections and the agent has looked again.
constexpr std::chrono::seconds kGrace{3};

json texts(const std::vector<net::IpAddress>& ips) {
  json out = json::array();
  for (const net::IpAddress& ip : ips) {
    out.push_back(net::to_string(ip));
  }
  return out;
}

std::vector<json> cluster_objects(const Case& test_case) {
  json addresses = json::array();
  for (const net::IpAddress& ip : node_addresses(test_case)) {
    addresses.push_back({{"type", "InternalIP"}, {"address", net::to_string(ip)}});
  }
  if (addresses.empty()) {  // every Node has one: the plan's, which no interface holds
    addresses.push_back({{"type", "InternalIP"}, {"address", "10.80.0.10"}});
  }
  json node{
      {"apiVersion", "v1"},
      {"kind", "Node"},
      {"metadata", {{"name", test_case.settings.node_name}}},
      {"spec", {{"podCIDR", "10.64.0.0/24"}, {"podCIDRs", {"10.64.0.0/24", "fd64::/64"}}}},
      {"status", {{"addresses", addresses}}}};
  if (!test_case.zone.empty()) {
    node["metadata"]["labels"]["topology.kubernetes.io/zone"] = test_case.zone;
  }
  const json ranges{
      {"apiVersion", "networking.k8s.io/v1"},
      {"kind", "ServiceCIDR"},
      {"metadata", {{"name", "kubernetes"}}},
      {"spec", {{"cidrs", test_case.settings.service_cidrs}}}};
  return {node, ranges};
}

class CaseRun {
 public:
  CaseRun(const Case& test_case, const Bench& bench, std::string directory)
      : case_(&test_case),
        bench_(&bench),
        directory_(std::move(directory)),
        settings_(test_case.settings),
        node_(test_case),
        connections_(node_.netns(), node_.neighbour(), bench.patience),
        server_(
            node_.netns(),
            bench.api_server,
            packet::make_pki(bench.pki, directory_ + "/pki"),
            directory_ + "/server.log") {
    version_ = server_.apply(cluster_objects(test_case));
    node_.leave(test_case.found_servers, test_case.found_bound);
  }

  bool leaves_out_found_servers() const {
    return table_of_family(case_->found_servers) != case_->found_servers;
  }

  // False when going on makes no sense.
  bool run_step(const Step& step, const std::string& name, Findings& findings) {
    if (step.connections) {
      connections_.set(*step.connections);
    }
    change(step);
    if (auto problem = agent_->wait_until_applied(version_, bench_->patience * kSyncTimeout)) {
      findings.problems.push_back(name + ": " + *problem);
      return false;
    }
    if (step.connections) {
      // Of real servers that came with this step.
      connections_.set(*step.connections);
    }
    std::this_thread::sleep_for(step.wait);
    judge(step, name, findings);
    return true;
  }

 private:
  void change(const Step& step) {
    if (step.restart && agent_) {
      agent_->stop();
      agent_.reset();
    }
    for (const Weight& weight : step.disturb) {
      node_.disturb(weight);
    }
    if (!step.remove.empty()) {
      version_ = server_.remove(step.remove);
    }
    if (!step.apply.empty()) {
      version_ = server_.apply(step.apply);
    }
    if (!step.scheduler.empty()) {
      settings_.ipvs_scheduler = step.scheduler;
    }
    if (!agent_) {  // the first step's start as well
      agent_.emplace(node_.netns(), server_, bench_->agent, directory_, settings_);
      agent_->start();
    }
  }

  // The other family's servers are nobody's business, but for those that were there before, where
  // the agent can be told to leave that family alone (node.cpp).
  json table_of_family(const json& table) const {
    json out = json::object();
    for (const auto& [name, server] : table.items()) {
      const bool of_family = parse_server_name(name).address.ip.family == case_->family;
      if (of_family || (!judges_own_family_only() && case_->found_servers.contains(name))) {
        out[name] = server;
      }
    }
    return out;
  }

  bool judges_own_family_only() const { return case_->family == net::Family::IPv6; }

  std::vector<std::string> differences(const Step& step, const std::string& name) const {
    std::vector<std::string> out;
    if (step.servers) {
      const std::string where = within(name, "servers");
      compare(where, table_of_family(*step.servers), table_of_family(node_.servers()), out);
    }
    if (step.bound) {
      const std::string where = within(name, "bound");
      compare(where, texts(*step.bound), texts(node_.bound(case_->family)), out);
    }
    return out;
  }

  void judge(const Step& step, const std::string& name, Findings& findings) const {
    const auto deadline = std::chrono::steady_clock::now() + bench_->patience * kGrace;
    std::vector<std::string> found = differences(step, name);
    while (!found.empty() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      found = differences(step, name);
    }
    findings.differences.insert(findings.differences.end(), found.begin(), found.end());
  }

  const Case* case_;
  const Bench* bench_;
  std::string directory_;
  packet::Settings settings_;
  Node node_;
  Connections connections_;
  packet::ApiServer server_;
  std::optional<packet::Agent> agent_;
  std::uint64_t version_ = 0;
};

}  // namespace

Findings run_case(const Case& test_case, const Bench& bench, const std::string& directory) {
  Findings findings;
  try {
    CaseRun run(test_case, bench, directory);
    if (run.leaves_out_found_servers()) {
      findings.not_judged.emplace_back(
          "what is found of IPv4: no node can say that it has no IPv4");
    }
    std::size_t number = 0;
    for (const Step& step : test_case.steps) {
      if (!run.run_step(step, fmt::format("step {}:", ++number), findings)) {
        break;
      }
    }
  } catch (const std::exception& error) {
    findings.problems.push_back(std::string("the lab failed: ") + error.what());
  }
  return findings;
}

}  // namespace shunt::conformance::virtual_servers
